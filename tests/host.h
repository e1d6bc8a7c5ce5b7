/*
 * A host for tests: an endpoint with packets, buffers and memory of its own, as a process has them;
 * and transports put together by name.
 */
#ifndef GW_TESTS_HOST_H
#define GW_TESTS_HOST_H

#include "core/host/endpoint.h"

struct gw_test_host {
    struct gw_endpoint *endpoint;
    struct gw_pkt_pool pool;
    struct gw_buf_pool bufs;
};

/* Endpoint options that suit most tests: one port, 8 flows each way, packets of `mtu` bytes. */
struct gw_endpoint_cfg gw_test_host_cfg(uint32_t address, uint32_t mtu);

/* Makes the host; cfg->pool is filled in here. `pkt_count` packets and as many buffers. */
void gw_test_host_open(struct gw_test_host *host, const struct gw_endpoint_cfg *cfg,
                       uint32_t pkt_count);

/* Frees the host. Fails the test when a packet or a buffer is missing: nothing may be queued. */
void gw_test_host_close(struct gw_test_host *host);

/* Frees a host that dies with all that it has in hand. */
void gw_test_host_abandon(struct gw_test_host *host);

/* A transport with the defaults of the named algorithms. */
struct gw_transport gw_test_transport(const char *cc, const char *lb, const char *loss);

/* A path of `rate_bps` and `brtt`, one hop, with the endpoint's packet size. */
struct gw_path gw_test_path(const struct gw_endpoint_cfg *cfg, uint64_t rate_bps, gw_time brtt);

/* Bytes that look random and depend on `seed` and place only. */
void gw_test_fill(unsigned char *bytes, size_t size, uint64_t seed);

#endif
