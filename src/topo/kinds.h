/*
 * What the topology kinds share: the fabric's common parameters, checks, and limits.
 *
 * Include this from a kind's file only.
 */
#ifndef GW_TOPO_KINDS_H
#define GW_TOPO_KINDS_H

#include "topo/topo.h"

enum {
    GW_TOPO_HOSTS_MAX = 65536, /* a route table has two bytes for each */
};

/* Parameters of every kind whose links are alike; first member of its cfg. */
struct gw_topo_fabric {
    uint64_t rate_bps;
    gw_time latency;
    gw_time switch_latency;
    gw_time host_delay;
};

/* Defaults are those of SMaRTT's section 4: 800 Gb/s, 600 ns links, 400 ns switches. */
#define GW_TOPO_FABRIC_PARAMS(cfg)                                                                 \
    {.name = "rate",                                                                               \
     .type = GW_PARAM_RATE,                                                                        \
     .offset = offsetof(cfg, fabric.rate_bps),                                                     \
     .initial = "800Gbps",                                                                         \
     .help = "rate of every link that nothing else is said of"},                                   \
        {.name = "latency",                                                                        \
         .type = GW_PARAM_TIME,                                                                    \
         .offset = offsetof(cfg, fabric.latency),                                                  \
         .initial = "600ns",                                                                       \
         .help = "propagation time of every link, one way"},                                       \
        {.name = "switch_latency",                                                                 \
         .type = GW_PARAM_TIME,                                                                    \
         .offset = offsetof(cfg, fabric.switch_latency),                                           \
         .initial = "400ns",                                                                       \
         .help = "time that a packet needs to cross a switch, besides queueing"},                  \
    {                                                                                              \
        .name = "host_delay", .type = GW_PARAM_TIME, .offset = offsetof(cfg, fabric.host_delay),   \
        .initial = "0", .help = "time that a packet needs to reach the transport in a host"        \
    }

/* Both return 0, or GW_ERR_INVALID with a sentence that begins with `name`. */
int gw_topo_check_range(const char *name, uint64_t value, uint64_t min, uint64_t max, char *why,
                        size_t why_size);
/* `divisor` must divide `whole`; `what` says in words what is divided. */
int gw_topo_check_divides(const char *name, uint32_t divisor, uint32_t whole, const char *what,
                          char *why, size_t why_size);

#endif
