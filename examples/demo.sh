#!/bin/sh
# Plan NASNet-A in the least memory its largest operator allows, prove the plan, execute it, show it.
set -eu
onchip=${1:-onchip}
out=${2:-out}
mkdir -p "$out"
"$onchip" plan zoo:nasnetalarge --budget MR --no-fuse -o "$out/nasnetalarge.plan.json"
"$onchip" check "$out/nasnetalarge.plan.json"
"$onchip" run "$out/nasnetalarge.plan.json"
"$onchip" report "$out/nasnetalarge.plan.json" -o "$out/nasnetalarge.html"
