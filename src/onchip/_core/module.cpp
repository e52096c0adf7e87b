// The Python face of the exact searches. Each search has a file of its own and binds itself.
#include <nanobind/nanobind.h>

#include "bindings.h"

NB_MODULE(_core, m) {
    onchip::bind_limits(m);
    onchip::placement::bind(m);
    onchip::pack::bind(m);
    onchip::fusion::bind(m);
    onchip::fusion::bind_pricer(m);
    onchip::joint::bind(m);
    onchip::nests::bind(m);
    onchip::timed::bind(m);
    onchip::corun::bind_pair(m);
    onchip::corun::bind(m);
    onchip::contest::bind(m);
    onchip::rows::bind(m);
    onchip::bind_guard(m);
}
