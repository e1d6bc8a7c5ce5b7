/* Switches for tests; see switch_fixture.h. */
#include "switch_fixture.h"

#include <stdlib.h>

#include "pool_fixture.h"
#include "support.h"

enum {
    QDISCS_MAX = 16,
};

/* The discipline's defaults, as long as the program runs. */
static const void *qdisc_defaults(const struct gw_algo *algo)
{
    static union gw_algo_cfg defaults[QDISCS_MAX];
    uint32_t at = 0;
    while (gw_qdisc_registry.algos[at] != algo)
        at++;
    assert_in_range(at, 0, QDISCS_MAX - 1);
    gw_algo_defaults(algo, defaults[at].bytes);
    return defaults[at].bytes;
}

const uint32_t *gw_test_capacity(uint32_t bytes)
{
    static uint32_t capacity[GW_TEST_SWITCH_PORTS_MAX];
    for (uint32_t port = 0; port < GW_TEST_SWITCH_PORTS_MAX; port++)
        capacity[port] = bytes;
    return capacity;
}

struct gw_switch_cfg gw_test_switch_cfg(uint16_t port_count, const char *qdisc,
                                        struct gw_pkt_pool *pool)
{
    const struct gw_algo *algo = gw_registry_find(&gw_qdisc_registry, qdisc);
    assert_non_null(algo);
    assert_in_range(port_count, 1, GW_TEST_SWITCH_PORTS_MAX);
    return (struct gw_switch_cfg){
        .port_count = port_count,
        .qdisc = (const struct gw_qdisc_ops *)algo,
        .qdisc_cfg = qdisc_defaults(algo),
        .capacity = gw_test_capacity(1 << 20),
        .trim_size = 64,
        .seed = 1,
        .pool = pool,
    };
}

struct gw_switch_routes gw_test_routes(const uint16_t *leaves, uint32_t destination_count)
{
    static const uint16_t block = 0;
    return (struct gw_switch_routes){
        .blocks = &block,
        .leaves = leaves,
        .destination_count = destination_count,
        .block_shift = 31,
    };
}

struct gw_switch *gw_test_switch_open(const struct gw_switch_cfg *cfg)
{
    return gw_switch_init(gw_test_take(gw_switch_size(cfg)), cfg);
}

void gw_test_switch_check(const struct gw_switch *sw, uint16_t port_count)
{
    for (uint16_t port = 0; port < port_count; port++) {
        struct gw_port_stats stats = gw_switch_port_stats(sw, port);
        assert_true(stats.in_bytes == stats.out_bytes + stats.trimmed_bytes + stats.dropped_bytes +
                                          gw_switch_backlog(sw, port));
    }
}

void gw_test_switch_close(struct gw_switch *sw, uint16_t port_count, struct gw_pkt_pool *pool)
{
    gw_test_switch_check(sw, port_count);
    gw_switch_fini(sw);
    gw_test_pool_close(pool);
    free(sw);
}
