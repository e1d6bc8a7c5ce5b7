/*
 * Switches for tests: options that suit most of them, of which a test changes what it is about.
 *
 *   struct gw_switch_cfg cfg = gw_test_switch_cfg(PORTS, "red", &pool);
 *   cfg.routes = gw_test_routes(leaves, HOSTS);
 *   struct gw_switch *sw = gw_test_switch_open(&cfg);
 */
#ifndef GW_TESTS_SWITCH_FIXTURE_H
#define GW_TESTS_SWITCH_FIXTURE_H

#include "core/switch/switch.h"

enum {
    GW_TEST_SWITCH_PORTS_MAX = 64,
};

/*
 * A switch with the defaults of the named queue discipline, 1 MiB per port, packets trimmed to 64
 * bytes, and neither routes nor a stage. It neither learns nor makes trains.
 */
struct gw_switch_cfg gw_test_switch_cfg(uint16_t port_count, const char *qdisc,
                                        struct gw_pkt_pool *pool);

/* A table of capacities that are all the same, until the next call. */
const uint32_t *gw_test_capacity(uint32_t bytes);

/* A flat table: destination d leaves by leaves[d], the caller's. Sets are added to it. */
struct gw_switch_routes gw_test_routes(const uint16_t *leaves, uint32_t destination_count);

/* Makes the switch, in memory that gw_test_switch_close() or the caller frees. */
struct gw_switch *gw_test_switch_open(const struct gw_switch_cfg *cfg);

/* Fails the test when bytes are missing in the books of a port. */
void gw_test_switch_check(const struct gw_switch *sw, uint16_t port_count);

/* Checks the books a last time, and frees the switch; fails the test when it keeps a packet. */
void gw_test_switch_close(struct gw_switch *sw, uint16_t port_count, struct gw_pkt_pool *pool);

#endif
