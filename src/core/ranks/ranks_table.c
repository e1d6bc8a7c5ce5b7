/* The table of ranks in bytes; see ranks_table.h. */
#include "core/ranks/ranks_table.h"

#include <string.h>

#include "base/prng.h"
#include "core/notice.h"
#include "wire/octets.h"

enum {
    AT_WORLD = 0,
    AT_NOTICE = 2,
    AT_ADDRESS = 0,
    AT_LOCATOR = 4,
};

_Static_assert((int)AT_LOCATOR + (int)GW_LOCATOR_SIZE == (int)GW_RANKS_TABLE_ENTRY_SIZE,
               "an entry has no holes");

uint32_t gw_ranks_table_sum(const struct gw_rank_place *places, uint16_t world)
{
    uint64_t sum = world;
    for (uint32_t rank = 0; rank < world; rank++)
        sum = gw_mix64(sum ^ places[rank].address);
    return (uint32_t)(sum >> 32) | 1;
}

static void write_header(uint16_t world, uint8_t notice_units, uint8_t *bytes)
{
    memset(bytes, 0, GW_RANKS_TABLE_ENTRY_SIZE);
    gw_octets_put(bytes + AT_WORLD, world, 2);
    bytes[AT_NOTICE] = notice_units;
}

void gw_ranks_table_write(const struct gw_rank_place *places, uint16_t world, uint8_t notice_units,
                          uint8_t *bytes)
{
    write_header(world, notice_units, bytes);
    for (uint32_t rank = 0; rank < world; rank++) {
        bytes += GW_RANKS_TABLE_ENTRY_SIZE;
        gw_octets_put(bytes + AT_ADDRESS, places[rank].address, 4);
        memcpy(bytes + AT_LOCATOR, places[rank].locator, GW_LOCATOR_SIZE);
    }
}

/* Whether the place has an address, and none of the `count` before it has the same. */
static bool is_new(const struct gw_rank_place *places, uint32_t count)
{
    uint32_t i = 0;
    while (i < count && places[i].address != places[count].address)
        i++;
    return i == count && places[count].address != 0;
}

bool gw_ranks_table_read(const uint8_t *bytes, size_t size, uint16_t world,
                         struct gw_rank_place *places, uint8_t *notice_units)
{
    uint8_t header[GW_RANKS_TABLE_ENTRY_SIZE];
    if (size != gw_ranks_table_size(world))
        return false;
    *notice_units = bytes[AT_NOTICE];
    write_header(world, *notice_units, header);
    bool is_sound =
        memcmp(header, bytes, sizeof(header)) == 0 && *notice_units <= GW_NOTICE_UNITS_MAX;
    for (uint32_t rank = 0; rank < world && is_sound; rank++) {
        bytes += GW_RANKS_TABLE_ENTRY_SIZE;
        places[rank].address = (uint32_t)gw_octets_get(bytes + AT_ADDRESS, 4);
        memcpy(places[rank].locator, bytes + AT_LOCATOR, GW_LOCATOR_SIZE);
        is_sound = is_new(places, rank);
    }
    return is_sound;
}
