/*
 * Sockets that have no room: loopback never pushes back by itself. Whoever links this has a
 * sendmsg() of its own that stands before the C library's, and sends all until it is told not to.
 */
#ifndef GW_TESTS_FULL_SOCKET_H
#define GW_TESTS_FULL_SOCKET_H

#include <stdint.h>

/* From now on every such call of sendmsg() finds no room (EAGAIN): 1: each; 0: none. */
void gw_test_full_socket(uint32_t every);

#endif
