/*
 * Locators of ranks (core/ranks/ranks_table.h) on sockets: where the socket of a process is.
 *
 *    0                   1                   2                   3
 *    0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
 *   +-------------------------------+---------------+---------------+
 *   |           UDP port            |  family, 4, 6 |       0       |
 *   +-------------------------------+---------------+---------------+
 *   |               IP address; of IPv4 the first word, then zeros  |
 *   |                                                               |
 *   |                                                               |
 *   |                                                               |
 *   +---------------------------------------------------------------+
 *
 * Big-endian. There is one encoding of everything: a locator that is read is written the same. All
 * zero: there is no straight way.
 */
#ifndef GW_NET_LOCATOR_H
#define GW_NET_LOCATOR_H

#include "core/ranks/ranks_table.h"
#include "net/sock_addr.h"

void gw_locator_write(const struct gw_sock_addr *addr, uint8_t bytes[GW_LOCATOR_SIZE]);

/* False: it is nowhere, or makes no sense, and *addr is not to be used. */
bool gw_locator_read(const uint8_t bytes[GW_LOCATOR_SIZE], struct gw_sock_addr *addr);

#endif
