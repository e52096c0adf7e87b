#pragma once
#include <nanobind/nanobind.h>

namespace onchip {
void bind_search(nanobind::module_& m);  // placement's capacity-only search (search.cpp)
void bind_pack(nanobind::module_& m);    // addresses for fixed live ranges (pack.cpp)
void bind_fusion(nanobind::module_& m);  // groups of operators that run fused (fusion.cpp)
void bind_pricing(nanobind::module_& m); // the best group for given worths of its operators (fusion_columns.cpp)
void bind_joint(nanobind::module_& m);   // fusion and placement as one search (joint.cpp)
void bind_corun(nanobind::module_& m);   // two networks on shared units, exactly (corun.cpp)
void bind_corun_any(nanobind::module_& m);  // any number of networks and units (corun_any.cpp)
void bind_guard(nanobind::module_& m);   // limits and crashes of a whole process (guard.cpp)
}  // namespace onchip
