#pragma once
#include <nanobind/nanobind.h>

namespace onchip {
void bind_limits(nanobind::module_& m);                      // limits of any search (limits.cpp)
namespace placement { void bind(nanobind::module_& m); }     // the capacity-only searches (placement.cpp)
namespace pack { void bind(nanobind::module_& m); }          // addresses for fixed live ranges (pack.cpp)
namespace fusion { void bind(nanobind::module_& m); }        // groups of operators that run fused (fusion.cpp)
namespace fusion { void bind_pricer(nanobind::module_& m); } // the best group for given worths (fusion_columns.cpp)
namespace joint { void bind(nanobind::module_& m); }         // fusion and placement as one search (joint.cpp)
namespace nests { void bind(nanobind::module_& m); }         // the best nest of loops for one group (nest_bind.cpp)
namespace timed { void bind(nanobind::module_& m); }         // the time of nests, and fast ones (time_bind.cpp)
namespace corun { void bind_pair(nanobind::module_& m); }    // two networks on shared units, exactly (corun_pair.cpp)
namespace corun { void bind(nanobind::module_& m); }         // any number of networks and units (corun.cpp)
namespace contest { void bind(nanobind::module_& m); }     // the contest's cost of a subgraph (contest.cpp)
namespace rows { void bind(nanobind::module_& m); }        // orders and addresses of rows (rows.cpp)
void bind_guard(nanobind::module_& m);                       // limits and crashes of a whole process (guard.cpp)
}  // namespace onchip
