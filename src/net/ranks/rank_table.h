/*
 * The table of ranks that rank 0 of a team sends to all others: an entry for each rank.
 *
 *    0                   1                   2                   3
 *    0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
 *   +---------------------------------------------------------------+
 *   |                     address on the overlay                    |
 *   +-------------------------------+---------------+---------------+
 *   |           UDP port            |  family, 4, 6 |       0       |
 *   +-------------------------------+---------------+---------------+
 *   |               IP address; of IPv4 the first word, then zeros  |
 *   |                                                               |
 *   |                                                               |
 *   |                                                               |
 *   +---------------------------------------------------------------+
 *
 * Big-endian. There is one encoding of everything: an entry that is read is written the same.
 */
#ifndef GW_NET_RANK_TABLE_H
#define GW_NET_RANK_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "net/sock_addr.h"

enum {
    GW_RANK_TABLE_ENTRY_SIZE = 24,
};

/* Where a rank is. */
struct gw_rank_table_entry {
    uint32_t address;         /* on the overlay; never 0 */
    struct gw_sock_addr addr; /* its first port */
};

void gw_rank_table_write(const struct gw_rank_table_entry *entry,
                         uint8_t bytes[GW_RANK_TABLE_ENTRY_SIZE]);

/* False: it makes no sense, and *entry is not to be used. */
bool gw_rank_table_read(const uint8_t bytes[GW_RANK_TABLE_ENTRY_SIZE],
                        struct gw_rank_table_entry *entry);

/* Everybody knows where rank 0 is. In place of its entry is the threshold that the job's bursts are
 * announced with, in units (core/notice.h). */
void gw_rank_table_write_notice(uint8_t units, uint8_t bytes[GW_RANK_TABLE_ENTRY_SIZE]);
bool gw_rank_table_read_notice(const uint8_t bytes[GW_RANK_TABLE_ENTRY_SIZE], uint8_t *units);

#endif
