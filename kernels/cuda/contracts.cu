// Launchers take a lane and then exactly the arguments of their contracts; those of bf16 may have bf16 arrays where the
// contract has float ones. Checked when this is compiled, as emitted calls convert numbers without a word.
#include <type_traits>

#include "kernels/bf16.h"

struct hkc_lane;

namespace {

template <class Value, class Argument> struct stored { using type = Argument; };
template <class Value> struct stored<Value, float *> { using type = Value *; };
template <class Value> struct stored<Value, const float *> { using type = const Value *; };
template <class Value> struct stored<Value, const float *const *> {
    using type = const Value *const *;
};

template <class Value, class Theirs, class Ours>
constexpr bool fits =
    std::is_same_v<Ours, Theirs> || std::is_same_v<Ours, typename stored<Value, Theirs>::type>;

template <class Value, class... Theirs, class... Ours>
std::bool_constant<(fits<Value, Theirs, Ours> && ...)>
compare(void (*contract)(Theirs...), void (*launcher)(hkc_lane *, Ours...));

} // namespace

#define HKC_CONTRACT(Value, contract, launcher)                                                    \
    static_assert(decltype(compare<Value>(contract, launcher))::value,                             \
                  #launcher " does not take what " #contract " takes");

#include "kernels/launchers.h"
