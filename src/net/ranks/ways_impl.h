/* Inside of the ways of a rank, shared by ways.c and ways_path.c, and by nobody else. */
#ifndef GW_NET_WAYS_IMPL_H
#define GW_NET_WAYS_IMPL_H

#include "net/path_meter.h"
#include "net/ranks/ways.h"

enum {
    GW_WAYS_NONE = -1, /* in place of a dial */
};

/* Another process, and our session with it. */
struct gw_ways_end {
    int dial;         /* or GW_WAYS_NONE: not dialled */
    bool is_up;       /* there is a session: */
    uint16_t peer;    /* its number */
    uint32_t address; /* of the host there */
    /* Of ranks. */
    bool is_reached; /* the mesh has a way */
    bool is_wanted;  /* it waits for one */
    gw_time wanted_at;
};

struct gw_ways {
    struct gw_ways_cfg cfg;
    struct gw_ways_end servers[GW_COMMUNICATOR_SERVERS_MAX];
    struct gw_ways_end switch_;
    int home_switch_dial; /* of a home in this process, or GW_WAYS_NONE */
    bool has_dialled;     /* servers */
    bool was_seated;      /* by the registrar at the first server, or by one before it */
    struct gw_ways_end *ranks;
    struct gw_rate_meter rate; /* of what this rank sends, in payload */
    gw_time measure_at;        /* when paths are looked at next */
};

/* ways_path.c */
/* The path to a server; to the home in this process. */
struct gw_path gw_ways_path_server(const struct gw_ways *ways, uint32_t server);
struct gw_path gw_ways_path_home(const struct gw_ways *ways);
/* Tells the mesh what is known of the path to a rank. */
void gw_ways_set_path(struct gw_ways *ways, uint32_t rank);
/* Takes note of what has been sent, and from beat to beat of what neighbours have measured; true:
 * it is such a beat. */
bool gw_ways_measure(struct gw_ways *ways, gw_time now);

#endif
