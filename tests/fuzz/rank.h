/*
 * A rank without a network, for fuzz targets of communicators: the input says what its fellows say,
 * and what it sends itself is lost.
 */
#ifndef GW_TESTS_RANK_H
#define GW_TESTS_RANK_H

#include <stdlib.h>
#include <string.h>

#include "fuzz/posted.h"
#include "host.h"

#include "base/error.h"
#include "core/calls/communicator.h"
#include "core/ranks/mesh_wire.h"
#include "core/ranks/ranks_table.h"

enum {
    GW_TEST_WORLD = 3,
    GW_TEST_TABLE = GW_RANKS_TABLE_ENTRY_SIZE * (GW_TEST_WORLD + 1), /* bytes */
    GW_TEST_OUTPUT_MAX = 64,
};

struct gw_test_rank {
    struct gw_test_host host;
    struct gw_communicator *comm;
    void *memory;
};

/* Makes the endpoint, with what the communicator demands of it, and the communicator. */
static inline void gw_test_rank_open(struct gw_test_rank *rank, struct gw_communicator_cfg *cfg,
                                     struct gw_endpoint_cfg *endpoint, uint32_t pkts, gw_time now)
{
    gw_communicator_demand(cfg, endpoint);
    gw_test_host_open(&rank->host, endpoint, pkts);
    cfg->endpoint = rank->host.endpoint;
    size_t size = gw_communicator_size(cfg);
    rank->memory = memset(gw_test_take(size), 0, size); /* runs are the same: some say too little */
    assert_int_equal(gw_communicator_init(&rank->comm, rank->memory, cfg, now), GW_OK);
}

/* Frees it; it is not busy any more. Nothing of the budget may be taken. */
static inline void gw_test_rank_close(struct gw_test_rank *rank,
                                      const struct gw_test_budget *budget)
{
    gw_communicator_fini(rank->comm);
    GW_ASSERT(budget->taken == 0);
    gw_endpoint_fini(rank->host.endpoint);
    gw_test_host_close(&rank->host);
    free(rank->memory);
}

/* The registrar's table: ranks have the addresses 1 to GW_TEST_WORLD. */
static inline void gw_test_rank_table(uint8_t bytes[GW_TEST_TABLE])
{
    struct gw_rank_place places[GW_TEST_WORLD] = {{.address = 1}, {.address = 2}, {.address = 3}};
    gw_ranks_table_write(places, GW_TEST_WORLD, 0, bytes);
}

/* Loses up to `max` packets that it wants to send, at most GW_TEST_OUTPUT_MAX. Returns how many. */
static inline uint32_t gw_test_rank_output(struct gw_test_rank *rank, uint32_t max, gw_time now)
{
    struct gw_pkt *pkts[GW_TEST_OUTPUT_MAX];
    struct gw_node *node = gw_endpoint_node(rank->host.endpoint);
    uint32_t count = gw_node_output(node, 0, pkts, max, now) & ~GW_OUTPUT_MORE;
    node->ready_count = 0;
    for (uint32_t i = 0; i < count; i++)
        gw_pkt_release(&rank->host.pool, pkts[i]);
    return count;
}

#endif
