/*
 * A tree of switches that add up, and hosts on it, joined by the network in memory: every packet
 * passes through its bytes, and links lose, double and delay packets as a seed says. Hosts and
 * switches die with all that they have in hand, and come back empty. Whoever uses it says what the
 * hosts do.
 *
 * The root switch has hosts of its own and, below it, racks of hosts or pods of racks.
 */
#ifndef GW_TESTS_TREE_NET_H
#define GW_TESTS_TREE_NET_H

#include "host.h"

#include "base/prng.h"
#include "core/switch/switch.h"
#include "net/mem.h"

enum {
    GW_TREE_NET_RACKS_MAX = 4,
    GW_TREE_NET_SWITCHES_MAX = 2 * GW_TREE_NET_RACKS_MAX + 1,
    GW_TREE_NET_HOSTS_MAX = 26,
    GW_TREE_NET_ADDRESSES_MAX = 64,
    GW_TREE_NET_PORTS_MAX = GW_TREE_NET_HOSTS_MAX + GW_TREE_NET_RACKS_MAX + 1,
    GW_TREE_NET_HDR = 44,
    GW_TREE_NET_SWITCH_ADDRESS = 1000, /* of the first; the others follow */
};

#define GW_TREE_NET_LATENCY (2 * GW_US) /* of a link, at least; at most twice that */
#define GW_TREE_NET_RATE    UINT64_C(10000000000)

struct gw_tree_net_cfg {
    uint64_t seed;
    uint32_t racks; /* 0: all hosts are at the root */
    uint32_t pods;  /* racks are spread over so many switches of a level in between; 0: no such */
    uint32_t host_count;
    uint32_t first_address; /* of host 0; the others follow */
    uint32_t alias;         /* 0, or what makes another address of a host's: for its next process */
    uint32_t mtu;           /* payload bytes of the largest packet */
    uint32_t frames_max;    /* under way on all links */
    uint32_t pkts;          /* that each node has */
    uint32_t queue_bytes;   /* of a port of a switch, which marks from a fifth of it; 0: ample */
    uint32_t aggregators;   /* per switch */
    enum gw_agg_reclaim reclaim;
    gw_time job_idle; /* of switches: forget a job whose server is silent for so long */
    uint32_t lose_of_64, double_of_64, delay_of_64; /* packets of each link, out of 64 */
};

struct gw_tree_switch {
    struct gw_switch *sw;
    struct gw_aggregate *aggregate;
    struct gw_pkt_pool pool;
    struct gw_buf_pool bufs;
    uint16_t leaf[GW_TREE_NET_ADDRESSES_MAX]; /* port per destination */
    bool is_edge[GW_TREE_NET_PORTS_MAX];
    uint16_t ports;
    uint32_t parent; /* or none; port 0 leads there */
    uint32_t node;   /* in the network */
    bool is_dead;
};

struct gw_tree_host {
    uint32_t home;              /* switch; these are to be set before opening */
    struct gw_endpoint_cfg cfg; /* its seed is filled in */
    struct gw_node *stranger;   /* the caller's node in the place of an endpoint, or NULL */
    struct gw_pkt_pool *stranger_pool;
    struct gw_test_host host;
    uint32_t node;     /* in the network */
    uint32_t from, to; /* links of the network, as seen by the host */
    bool is_up;
};

struct gw_tree_net {
    struct gw_tree_net_cfg cfg;
    struct gw_mem *mem;
    struct gw_prng prng; /* of seeds and links */
    uint32_t switch_count;
    struct gw_tree_switch switches[GW_TREE_NET_SWITCHES_MAX]; /* racks, pods, the root */
    struct gw_tree_host hosts[GW_TREE_NET_HOSTS_MAX];
};

/* A mask with about `of_64` of 64 bits set. */
uint64_t gw_tree_net_mask(struct gw_prng *prng, uint32_t of_64);

/* Lays the switches out; then every host is at the root, and has the endpoint that suits most. */
void gw_tree_net_init(struct gw_tree_net *net, const struct gw_tree_net_cfg *cfg);

/* Starts everything, at a clock that wraps soon. */
void gw_tree_net_open(struct gw_tree_net *net);

/* Frees what lives, and fails the test when a packet or a buffer is missing: nothing may be under
 * way, and switches may know no job. */
void gw_tree_net_close(struct gw_tree_net *net);

static inline uint32_t gw_tree_net_address(const struct gw_tree_net *net, uint32_t host)
{
    return net->cfg.first_address + host;
}

static inline gw_time gw_tree_net_now(const struct gw_tree_net *net)
{
    return gw_mem_now(net->mem);
}

/* Dies with all that it has in hand, or comes back. What runs on its endpoint is the caller's. */
void gw_tree_net_kill_host(struct gw_tree_net *net, uint32_t host);
void gw_tree_net_restart_host(struct gw_tree_net *net, uint32_t host);
void gw_tree_net_kill_switch(struct gw_tree_net *net, uint32_t index);
void gw_tree_net_restart_switch(struct gw_tree_net *net, uint32_t index);

#endif
