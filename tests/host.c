/* A host for tests; see host.h. */
#include "host.h"

#include "pool_fixture.h"
#include "support.h"
#include "wire/wire.h"

#include "base/prng.h"

struct gw_endpoint_cfg gw_test_host_cfg(uint32_t address, uint32_t mtu)
{
    return (struct gw_endpoint_cfg){
        .address = address,
        .port_count = 1,
        .tx_flows_max = 8,
        .rx_flows_max = 8,
        .span_max = 1024,
        .control_max = 256,
        .expect_max = 8,
        .mtu = mtu,
        .hdr = 64,
        .ack_every = 1,
        .is_lossless = true,
        .train = 1,
        .seed = address,
    };
}

void gw_test_host_open(struct gw_test_host *host, const struct gw_endpoint_cfg *cfg,
                       uint32_t pkt_count)
{
    struct gw_endpoint_cfg own = *cfg;
    own.pool = &host->pool;
    gw_test_pool_open(&host->pool, &host->bufs, pkt_count, GW_WIRE_DATA_SIZE + cfg->mtu);
    gw_buf_pool_set_front(&host->bufs, GW_WIRE_DATA_SIZE);
    size_t endpoint = gw_endpoint_size(&own);
    assert_true(endpoint > 0);
    host->endpoint = gw_endpoint_init(gw_test_take(endpoint), &own);
}

void gw_test_host_close(struct gw_test_host *host)
{
    gw_test_pool_close(&host->pool);
    free(host->endpoint);
}

void gw_test_host_abandon(struct gw_test_host *host)
{
    gw_test_pool_abandon(&host->pool);
    free(host->endpoint);
}

struct gw_transport gw_test_transport(const char *cc, const char *lb, const char *loss)
{
    /* The entry of the registry is the first member of its ops table. */
    struct gw_transport transport = {
        .lb = (const struct gw_lb_ops *)gw_registry_find(&gw_lb_registry, lb),
        .loss = (const struct gw_loss_ops *)gw_registry_find(&gw_loss_registry, loss),
    };
    assert_int_equal(gw_transport_choose(&transport, cc), 0);
    assert_non_null(transport.lb);
    assert_non_null(transport.loss);
    gw_algo_defaults(&transport.lb->algo, transport.lb_cfg.bytes);
    gw_algo_defaults(&transport.loss->algo, transport.loss_cfg.bytes);
    return transport;
}

struct gw_path gw_test_path(const struct gw_endpoint_cfg *cfg, uint64_t rate_bps, gw_time brtt)
{
    return (struct gw_path){
        .brtt = brtt,
        .brtt_max = brtt,
        .rate_bps = rate_bps,
        .bdp = (uint32_t)(rate_bps / 8 * (brtt / GW_NS) / 1000000000),
        .mtu = cfg->mtu,
        .hdr = cfg->hdr,
        .hops = 1,
    };
}

void gw_test_fill(unsigned char *bytes, size_t size, uint64_t seed)
{
    struct gw_prng prng = gw_prng_derive(seed, 0);
    for (size_t i = 0; i < size; i += sizeof(uint64_t)) {
        uint64_t word = gw_prng_next(&prng);
        size_t left = size - i < sizeof(word) ? size - i : sizeof(word);
        memcpy(bytes + i, &word, left);
    }
}
