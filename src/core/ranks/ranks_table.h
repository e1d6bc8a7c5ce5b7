/*
 * The table of ranks that a job's registrar hands out: a header, then an entry for each rank.
 *
 *    0                   1                   2                   3
 *    0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
 *   +---------------------------------------------------------------+
 *   |             world             |  notice units |       0       |  header
 *   +---------------------------------------------------------------+
 *   |               0, up to the size of an entry                   |
 *   +---------------------------------------------------------------+
 *   |                     address on the overlay                    |  entry
 *   +---------------------------------------------------------------+
 *   |                     locator, 20 bytes                         |
 *   +---------------------------------------------------------------+
 *
 * Big-endian. There is one encoding of everything: what is read is written the same. A locator says
 * where the rank's process is, to those who have sockets; the core only passes it on. All zero:
 * there is no straight way, packets to the rank go by the switch.
 */
#ifndef GW_CORE_RANKS_TABLE_H
#define GW_CORE_RANKS_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    GW_LOCATOR_SIZE = 20,
    GW_RANKS_TABLE_ENTRY_SIZE = 24, /* and that of the header */
};

/* Where a rank is. */
struct gw_rank_place {
    uint32_t address; /* on the overlay; never 0 */
    uint8_t locator[GW_LOCATOR_SIZE];
};

/* Bytes of a table. */
static inline size_t gw_ranks_table_size(uint32_t world)
{
    return (size_t)GW_RANKS_TABLE_ENTRY_SIZE * (1 + (size_t)world);
}

/* A number that tells one table's ranks from another's; never 0. */
uint32_t gw_ranks_table_sum(const struct gw_rank_place *places, uint16_t world);

void gw_ranks_table_write(const struct gw_rank_place *places, uint16_t world, uint8_t notice_units,
                          uint8_t *bytes);

/*
 * False: it is not a table of so many ranks, makes no sense, or two ranks have one address;
 * `places` is not to be used.
 */
bool gw_ranks_table_read(const uint8_t *bytes, size_t size, uint16_t world,
                         struct gw_rank_place *places, uint8_t *notice_units);

#endif
