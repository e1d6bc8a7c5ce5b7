/*
 * Numbers in bytes, big-endian, as everything on the wire but the values of gradients: of any size
 * up to eight bytes, at any alignment.
 */
#ifndef GW_WIRE_OCTETS_H
#define GW_WIRE_OCTETS_H

#include <stdint.h>

static inline void gw_octets_put(uint8_t *at, uint64_t value, uint32_t size)
{
    while (size-- > 0) {
        at[size] = (uint8_t)value;
        value >>= 8;
    }
}

static inline uint64_t gw_octets_get(const uint8_t *at, uint32_t size)
{
    uint64_t value = 0;
    for (uint32_t i = 0; i < size; i++)
        value = value << 8 | at[i];
    return value;
}

#endif
