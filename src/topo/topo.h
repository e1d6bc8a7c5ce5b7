/*
 * A network as data: nodes, links, and for every switch the next hops towards every host.
 *
 * Node ids: hosts come first, [0, hosts), then switches. A host's id is its address. The ports of a
 * node are numbered in the order of (peer id, link id), so that on every node the order of ports is
 * the order of peers. A topology kind is one file here and one line in topo.def; it only adds nodes
 * and links, the rest (ports, routes, partitions) is derived.
 */
#ifndef GW_TOPO_TOPO_H
#define GW_TOPO_TOPO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/time.h"
#include "core/algo.h"

#define GW_PORT_NONE UINT16_MAX

/* One direction of a link. */
struct gw_link_side {
    uint32_t node; /* the end that sends in this direction */
    uint16_t port; /* its port; set by gw_topo_finish() */
    uint64_t rate_bps;
    uint32_t queue_bytes; /* capacity of the sender's queue for data; 0: the scenario's default */
};

struct gw_link {
    struct gw_link_side side[2]; /* side[0] sends to side[1].node and the reverse */
    gw_time latency;             /* propagation, one way */
    bool down;                   /* routes avoid it; gw_topo_route() reads this */
};

struct gw_topo_node {
    char name[24];       /* "host3", "tor0", "agg1", "core0"; unique */
    uint32_t group;      /* nodes of one group are kept in one partition (pod, rack), numbered from
                            0; GW_GROUP_ANY for nodes that may go anywhere (core, spine) */
    gw_time delay;       /* switch latency, or a host's own delay per traversal; paid on arrival */
    uint32_t first_port; /* index into `ports` of port 0; set by gw_topo_finish() */
    uint16_t port_count; /* set by gw_topo_finish() */
};

#define GW_GROUP_ANY UINT32_MAX

/* What is attached to a port. */
struct gw_topo_port {
    uint32_t link;
    uint8_t side;  /* links[link].side[side] is this port's */
    uint32_t peer; /* node at the other end */
    uint16_t peer_port;
};

/* Next hops of one switch. route[host] is an index into `sets`. */
struct gw_topo_routes {
    uint16_t *route; /* one per host; GW_PORT_NONE: unreachable */
    struct gw_topo_set {
        uint32_t first; /* index into `members` */
        uint32_t count;
    } * sets;          /* distinct sets of equal-cost next hops */
    uint16_t *members; /* port numbers, ascending within a set */
    uint32_t set_count;
    uint32_t member_count;
};

struct gw_topo {
    uint32_t host_count;
    uint32_t node_count; /* hosts and switches */
    uint32_t link_count;
    uint32_t node_room; /* allocated */
    uint32_t link_room;
    struct gw_topo_node *nodes;
    struct gw_link *links;
    struct gw_topo_port *ports;    /* set by gw_topo_finish() */
    struct gw_topo_routes *routes; /* one per switch: [node - host_count]; set by gw_topo_route() */
};

struct gw_topo_kind {
    struct gw_algo algo; /* name, summary, parameters; the cfg is the kind's own */
    /*
     * Adds nodes and links to the empty `topo`. Returns 0, or a negative error with a sentence in
     * `why` that begins with the name of the parameter at fault ("k must be even, not 7").
     */
    int (*build)(struct gw_topo *topo, const void *cfg, char *why, size_t why_size);
};

extern const struct gw_registry gw_topo_registry;

void gw_topo_init(struct gw_topo *topo);
void gw_topo_fini(struct gw_topo *topo);

/* For kinds. All hosts must be added before the first switch. Returns the node's id. */
uint32_t gw_topo_add_node(struct gw_topo *topo, bool is_switch, uint32_t group, gw_time delay,
                          const char *name_format, ...) __attribute__((format(printf, 5, 6)));
/* A symmetric link; the sides can be changed afterwards. Returns the link's id. */
uint32_t gw_topo_add_link(struct gw_topo *topo, uint32_t a, uint32_t b, uint64_t rate_bps,
                          gw_time latency);

/* Node called `name`, or UINT32_MAX. */
uint32_t gw_topo_find(const struct gw_topo *topo, const char *name);

/*
 * Numbers the ports. Returns 0, or GW_ERR_INVALID with a sentence in `why` (no host, a host without
 * link, more than 65535 ports on a node).
 */
int gw_topo_finish(struct gw_topo *topo, char *why, size_t why_size);

/*
 * Computes every switch's shortest-path next hops over the links that are not down; replaces
 * earlier routes. Returns 0, or GW_ERR_NO_ROOM when a switch needs more than 65535 sets of next
 * hops. A host that cannot be reached has no route: it is the caller who decides whether that is an
 * error.
 */
int gw_topo_route(struct gw_topo *topo);
/* Frees the routes; gw_topo_fini() does so too. */
void gw_topo_routes_free(struct gw_topo *topo);

/* A shortest path between two hosts, and its times. */
struct gw_topo_path {
    uint16_t hops;         /* links one way; 0: unreachable */
    gw_time one_way_full;  /* a full packet's last bit, out */
    gw_time one_way_ack;   /* a header-only packet's last bit, back */
    uint64_t rate_bps_min; /* slowest link on the way out */
};

/* `full` and `ack` are packet sizes in wire bytes. Needs routes. */
struct gw_topo_path gw_topo_path(const struct gw_topo *topo, uint32_t src, uint32_t dst,
                                 uint32_t full, uint32_t ack);

/* Base RTT, out and back, of the longest shortest path between any two hosts; 0: no two hosts are
 * connected. Needs routes. */
gw_time gw_topo_brtt_max(const struct gw_topo *topo, uint32_t full, uint32_t ack);

/* Smallest and largest latency (link plus the receiving node's delay) over all links. */
gw_time gw_topo_latency_min(const struct gw_topo *topo);
gw_time gw_topo_latency_max(const struct gw_topo *topo);

/*
 * Assigns every node to one of `parts` partitions of about equal work, keeping groups whole:
 * part[node] < parts. With fewer groups than parts some partitions stay empty.
 */
void gw_topo_partition(const struct gw_topo *topo, uint32_t parts, uint16_t *part);

#endif
