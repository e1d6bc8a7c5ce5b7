/* The registry made from topo.def, and what the kinds share. */
#include "topo/kinds.h"

#include <stdio.h>

#include "base/error.h"

#define GW_REGISTER(name) extern const struct gw_topo_kind gw_topo_##name;
#include "topo/topo.def"
#undef GW_REGISTER

static const struct gw_algo *const algos[] = {
#define GW_REGISTER(name) &gw_topo_##name.algo,
#include "topo/topo.def"
#undef GW_REGISTER
};

const struct gw_registry gw_topo_registry = {
    .kind = "topo",
    .algos = algos,
    .count = sizeof(algos) / sizeof(algos[0]),
};

int gw_topo_check_range(const char *name, uint64_t value, uint64_t min, uint64_t max, char *why,
                        size_t why_size)
{
    if (value >= min && value <= max)
        return GW_OK;
    snprintf(why, why_size, "%s must be from %llu to %llu, not %llu", name, (unsigned long long)min,
             (unsigned long long)max, (unsigned long long)value);
    return GW_ERR_INVALID;
}

int gw_topo_check_divides(const char *name, uint32_t divisor, uint32_t whole, const char *what,
                          char *why, size_t why_size)
{
    if (divisor != 0 && whole % divisor == 0)
        return GW_OK;
    snprintf(why, why_size, "%s must divide the %u %s, and %u does not", name, whole, what,
             divisor);
    return GW_ERR_INVALID;
}
