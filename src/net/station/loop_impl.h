/*
 * Inside of the loop, shared by loop.c (turns) and loop_links.c (what hangs where), and by nobody
 * else.
 */
#ifndef GW_NET_LOOP_IMPL_H
#define GW_NET_LOOP_IMPL_H

#include "base/index_queue.h"
#include "base/pacer.h"
#include "net/batch_policy.h"
#include "net/station/directs.h"
#include "net/station/loop.h"
#include "net/station/own_time.h"
#include "net/station/permits.h"
#include "net/yield.h"

enum {
    /* Of one turn: feedback stays fresh in a long burst, and arrivals find their answers. */
    GW_LOOP_RX_TRAINS = 8,
    GW_LOOP_PORT_NONE = UINT32_MAX,
};

/* Where what leaves by a port goes: to a neighbour, else to another port, else nowhere. */
struct gw_loop_link {
    uint16_t peer;          /* or GW_DIRECTS_NO_PEER */
    uint32_t to;            /* number of the port at the other end, or GW_LOOP_PORT_NONE */
    bool has_directs;       /* some addresses take another way */
    gw_byte_time byte_time; /* 0: it has no rate */
    struct gw_pacer pacer;  /* with a rate */
    gw_time since;          /* with a rate: when what waits began to wait */
};

/* A datagram that is no packet, for the loop's owner. */
struct gw_loop_foreign {
    uint8_t bytes[GW_LOOP_FOREIGN_MAX];
    uint32_t length;
    struct gw_sock_addr from;
};

struct gw_loop {
    struct gw_loop_cfg cfg;
    struct gw_own_time time;
    struct gw_node *nodes[GW_LOOP_NODES_MAX];
    uint32_t first_port[GW_LOOP_NODES_MAX + 1]; /* number of a node's port 0 */
    uint16_t node_count;
    struct gw_loop_link *links; /* of every port */
    struct gw_loop_port *ports; /* number to node and port */
    uint32_t *ready;            /* ports that have something to send */
    struct gw_index_queue ready_queue;
    uint32_t *arrives; /* of every neighbour: port that its packets arrive at, or none */
    struct gw_permits permits;
    struct gw_directs directs; /* of ports; of GW_LOOP_PORT_NONE: for what comes from neighbours */
    struct gw_directs jobs;    /* of jobs, whatever the port */
    bool has_locals;           /* neighbours send to addresses of this thread that have ways */
    struct gw_loop_foreign foreign[GW_LOOP_RX_TRAINS * GW_DATAPATH_CONTROLS_MAX];
    uint32_t foreign_count, foreign_taken;
    uint32_t received; /* frames of 1500 bytes, since it rested */
    struct gw_yield yield;
    struct gw_batch_policy policy;
    bool has_input;  /* at one of cfg.fds, in the last turn */
    bool is_idle;    /* the last turn rested, and nothing came */
    bool is_drained; /* the last turn took all that had come, and did not rest */
    gw_time due;     /* see gw_loop_due() */
    struct gw_loop_stats stats;
};

#endif
