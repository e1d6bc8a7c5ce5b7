/* The tree of switches and hosts; see tree_net.h. */
#include "tree_net.h"

#include "pool_fixture.h"
#include "support.h"
#include "switch_fixture.h"

#include "base/cpu.h"

enum {
    AMPLE = 1 << 20, /* bytes of a queue */
    JOBS_MAX = 32,
    MEMBERS_MAX = 256, /* of all jobs, at one switch */
    NO_SWITCH = UINT32_MAX,
};

#define LEAK (2 * GW_MS)

uint64_t gw_tree_net_mask(struct gw_prng *prng, uint32_t of_64)
{
    uint64_t mask = 0;
    for (uint32_t i = 0; i < 64; i++)
        mask |= (uint64_t)(gw_prng_below(prng, 64) < of_64) << i;
    return mask;
}

void gw_tree_net_init(struct gw_tree_net *net, const struct gw_tree_net_cfg *cfg)
{
    uint32_t root = cfg->racks + cfg->pods;
    *net = (struct gw_tree_net){.cfg = *cfg, .prng = gw_prng_derive(cfg->seed, 1)};
    assert_in_range(cfg->host_count, 1, GW_TREE_NET_HOSTS_MAX);
    assert_in_range(cfg->first_address + cfg->alias + cfg->host_count, 1,
                    GW_TREE_NET_ADDRESSES_MAX);
    net->switch_count = root + 1;
    net->switches[root].parent = NO_SWITCH;
    for (uint32_t i = 0; i < root; i++)
        net->switches[i].parent = i < cfg->racks && cfg->pods ? cfg->racks + i % cfg->pods : root;
    for (uint32_t host = 0; host < cfg->host_count; host++) {
        net->hosts[host].home = root;
        net->hosts[host].cfg = gw_test_host_cfg(gw_tree_net_address(net, host), cfg->mtu);
        net->hosts[host].cfg.hdr = GW_TREE_NET_HDR;
    }
}

static uint32_t connect(struct gw_tree_net *net, uint32_t from, uint16_t from_port, uint32_t to,
                        uint16_t to_port)
{
    struct gw_mem_link link = {
        .latency = GW_TREE_NET_LATENCY + gw_prng_below(&net->prng, GW_TREE_NET_LATENCY),
        .rate_bps = GW_TREE_NET_RATE,
        .lose = gw_tree_net_mask(&net->prng, net->cfg.lose_of_64),
        .duplicate = gw_tree_net_mask(&net->prng, net->cfg.double_of_64),
        .delay = gw_tree_net_mask(&net->prng, net->cfg.delay_of_64),
        .delay_by = 5 * GW_TREE_NET_LATENCY,
    };
    return gw_mem_connect(net->mem, from, from_port, to, to_port, &link);
}

static void host_start(struct gw_tree_net *net, uint32_t index)
{
    struct gw_tree_host *host = &net->hosts[index];
    host->cfg.seed = gw_prng_next(&net->prng);
    gw_test_host_open(&host->host, &host->cfg, net->cfg.pkts);
    host->is_up = true;
}

/* The host is behind the port. */
static void lead(struct gw_tree_net *net, struct gw_tree_switch *s, uint32_t host, uint16_t port)
{
    uint32_t address = gw_tree_net_address(net, host);
    s->leaf[address] = s->leaf[address + net->cfg.alias] = port;
}

/* Ports: 0 up (if there is an up), then switches below, then hosts. */
static void switch_ports(struct gw_tree_net *net, uint32_t index)
{
    struct gw_tree_switch *s = &net->switches[index];
    s->ports = s->parent != NO_SWITCH;
    for (uint32_t below = 0; below < net->switch_count; below++) {
        if (net->switches[below].parent != index)
            continue;
        for (uint32_t host = 0; host < net->cfg.host_count; host++) {
            uint32_t at = net->hosts[host].home;
            while (at != NO_SWITCH && at != below)
                at = net->switches[at].parent;
            if (at == below)
                lead(net, s, host, s->ports);
        }
        s->ports++;
    }
    for (uint32_t host = 0; host < net->cfg.host_count; host++)
        if (net->hosts[host].home == index) {
            s->is_edge[s->ports] = true;
            lead(net, s, host, s->ports++);
        }
}

static void switch_start(struct gw_tree_net *net, uint32_t index)
{
    struct gw_tree_switch *s = &net->switches[index];
    gw_test_pool_open(&s->pool, &s->bufs, net->cfg.pkts, net->cfg.mtu);
    struct gw_aggregate_cfg aggregate = {
        .aggregators = net->cfg.aggregators,
        .jobs_max = JOBS_MAX,
        .members_max = MEMBERS_MAX,
        .leak = LEAK,
        .reclaim = net->cfg.reclaim,
        .job_idle = net->cfg.job_idle,
        .kernels = gw_kernels_best(gw_cpu_features()),
        .pool = &s->pool,
    };
    s->aggregate = gw_aggregate_init(gw_test_take(gw_aggregate_size(&aggregate)), &aggregate);
    struct gw_switch_cfg cfg = gw_test_switch_cfg(s->ports, "red", &s->pool);
    cfg.trim_size = GW_TREE_NET_HDR;
    cfg.capacity = gw_test_capacity(net->cfg.queue_bytes ? net->cfg.queue_bytes : AMPLE);
    cfg.aggregate = s->aggregate;
    cfg.address = GW_TREE_NET_SWITCH_ADDRESS + index;
    cfg.is_edge = s->is_edge;
    cfg.routes =
        gw_test_routes(s->leaf, net->cfg.first_address + net->cfg.alias + net->cfg.host_count);
    cfg.seed = gw_prng_next(&net->prng);
    s->sw = gw_test_switch_open(&cfg);
    s->is_dead = false;
}

static void add_host(struct gw_tree_net *net, uint32_t index)
{
    struct gw_tree_host *host = &net->hosts[index];
    const struct gw_tree_switch *home = &net->switches[host->home];
    uint16_t port = home->leaf[gw_tree_net_address(net, index)];
    if (host->stranger) {
        host->node = gw_mem_add(net->mem, host->stranger, host->stranger_pool);
    } else {
        host_start(net, index);
        host->node = gw_mem_add(net->mem, gw_endpoint_node(host->host.endpoint), &host->host.pool);
    }
    host->from = connect(net, host->node, 0, home->node, port);
    host->to = connect(net, home->node, port, host->node, 0);
}

void gw_tree_net_open(struct gw_tree_net *net)
{
    net->mem = gw_mem_open(&(struct gw_mem_cfg){.cookie = 3,
                                                .mtu = net->cfg.mtu,
                                                .frames_max = net->cfg.frames_max,
                                                .batch = 1,
                                                .start = (gw_time)0 - GW_MS}); /* wraps soon */
    assert_non_null(net->mem);
    for (uint32_t i = 0; i < net->switch_count; i++) {
        struct gw_tree_switch *s = &net->switches[i];
        switch_ports(net, i);
        switch_start(net, i);
        s->node = gw_mem_add(net->mem, gw_switch_node(s->sw), &s->pool);
    }
    for (uint32_t i = 0; i < net->cfg.host_count; i++)
        add_host(net, i);
    for (uint32_t i = 0; i < net->switch_count; i++) {
        uint32_t up = net->switches[i].parent;
        uint16_t port = up != NO_SWITCH && net->switches[up].parent != NO_SWITCH;
        for (uint32_t other = 0; up != NO_SWITCH && other < i; other++)
            port += net->switches[other].parent == up;
        if (up != NO_SWITCH) {
            connect(net, net->switches[i].node, 0, net->switches[up].node, port);
            connect(net, net->switches[up].node, port, net->switches[i].node, 0);
        }
    }
}

void gw_tree_net_close(struct gw_tree_net *net)
{
    for (uint32_t i = 0; i < net->switch_count; i++) {
        struct gw_tree_switch *s = &net->switches[i];
        if (s->is_dead)
            continue;
        gw_aggregate_fini(s->aggregate);
        gw_test_pool_close(&s->pool);
        free(s->sw);
        free(s->aggregate);
    }
    for (uint32_t i = 0; i < net->cfg.host_count; i++)
        if (net->hosts[i].is_up)
            gw_test_host_close(&net->hosts[i].host);
    gw_mem_close(net->mem);
}

void gw_tree_net_kill_host(struct gw_tree_net *net, uint32_t index)
{
    struct gw_tree_host *host = &net->hosts[index];
    gw_mem_replace(net->mem, host->node, NULL, NULL);
    gw_test_host_abandon(&host->host);
    host->is_up = false;
}

void gw_tree_net_restart_host(struct gw_tree_net *net, uint32_t index)
{
    struct gw_tree_host *host = &net->hosts[index];
    host_start(net, index);
    gw_mem_replace(net->mem, host->node, gw_endpoint_node(host->host.endpoint), &host->host.pool);
}

void gw_tree_net_kill_switch(struct gw_tree_net *net, uint32_t index)
{
    struct gw_tree_switch *s = &net->switches[index];
    gw_mem_replace(net->mem, s->node, NULL, NULL);
    gw_test_pool_abandon(&s->pool);
    free(s->sw);
    free(s->aggregate);
    s->is_dead = true;
}

void gw_tree_net_restart_switch(struct gw_tree_net *net, uint32_t index)
{
    struct gw_tree_switch *s = &net->switches[index];
    switch_start(net, index);
    gw_mem_replace(net->mem, s->node, gw_switch_node(s->sw), &s->pool);
}
