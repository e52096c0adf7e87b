// How structs and enums cross to Python and back: each field and each name is stated once, where it is bound.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <optional>
#include <type_traits>
#include <utility>

#include "clock.h"

namespace onchip {

namespace nb = nanobind;

// A member and its name in Python.
template <class T, class F>
struct Field {
    Field(const char* called, F T::*where) : name(called), at(where) {}
    const char* name;
    F T::*at;
};

template <class T>
constexpr bool may_be_none = false;
template <class T>
constexpr bool may_be_none<std::optional<T>> = true;

template <class T, class F>
nb::arg argument(const Field<T, F>& field) {
    nb::arg result(field.name);
    if constexpr (may_be_none<F> || std::is_same_v<F, nb::object>) result.none();
    return result;
}

// A struct that Python makes, every field by keyword.
template <class T, class... F>
nb::class_<T> given(nb::module_& m, const char* name, Field<T, F>... fields) {
    return nb::class_<T>(m, name).def(
        "__init__",
        [fields...](T* self, F... values) {
            new (self) T();
            ((self->*fields.at = std::move(values)), ...);
        },
        nb::kw_only(), argument(fields)...);
}

// A struct that Python reads.
template <class T, class... F>
nb::class_<T> answer(nb::module_& m, const char* name, Field<T, F>... fields) {
    nb::class_<T> result(m, name);
    (result.def_ro(fields.name, fields.at), ...);
    return result;
}

// The names of an enum's values, which cross in their place.
template <class E>
struct Names;

template <std::size_t N, std::size_t... M>
constexpr auto listed(const char (&first)[N], const char (&... rest)[M]) {
    using nb::detail::const_name;
    return const_name("'") + const_name(first) + const_name("'") +
           (nb::detail::descr<0>() + ... + (const_name(", '") + const_name(rest) + const_name("'")));
}

}  // namespace onchip

namespace nanobind::detail {

template <class E>
struct name_caster {
    NB_TYPE_CASTER(E, const_name("typing.Literal[") + onchip::Names<E>::literal + const_name("]"))

    bool from_python(handle given, std::uint32_t, cleanup_list*) noexcept {
        const char* const name = PyUnicode_Check(given.ptr()) ? PyUnicode_AsUTF8(given.ptr()) : nullptr;
        if (!name) return PyErr_Clear(), false;
        const auto& all = onchip::Names<E>::all;
        const auto found = std::find_if(std::begin(all), std::end(all), [&](const char* n) { return !std::strcmp(n, name); });
        value = static_cast<E>(found - std::begin(all));
        return found != std::end(all);
    }
    static handle from_cpp(E e, rv_policy, cleanup_list*) noexcept {
        return PyUnicode_FromString(onchip::Names<E>::all[static_cast<std::size_t>(e)]);
    }
};

}  // namespace nanobind::detail

// At file scope: the names of an enum's values, in their order.
#define ONCHIP_NAMES(Enum, ...)                                    \
    template <>                                                    \
    struct onchip::Names<Enum> {                                   \
        static constexpr const char* all[] = {__VA_ARGS__};        \
        static constexpr auto literal = onchip::listed(__VA_ARGS__); \
    };                                                             \
    template <>                                                    \
    struct nanobind::detail::type_caster<Enum> : nanobind::detail::name_caster<Enum> {};

ONCHIP_NAMES(onchip::End, "complete", "time", "memory", "stopped", "nodes", "width")
