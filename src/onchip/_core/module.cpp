// The Python face of the exact searches. Each search has a file of its own and binds itself.
#include <nanobind/nanobind.h>

#include "bindings.h"

NB_MODULE(_core, m) {
    onchip::bind_search(m);
    onchip::bind_pack(m);
    onchip::bind_fusion(m);
    onchip::bind_pricing(m);
    onchip::bind_joint(m);
    onchip::bind_corun(m);
    onchip::bind_corun_any(m);
    onchip::bind_guard(m);
}
