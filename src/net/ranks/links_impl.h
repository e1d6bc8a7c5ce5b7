/* Inside of the links of a rank, shared by links.c and links_path.c, and by nobody else. */
#ifndef GW_NET_LINKS_IMPL_H
#define GW_NET_LINKS_IMPL_H

#include "net/path_meter.h"
#include "net/ranks/links.h"

enum {
    GW_LINK_NONE = -1, /* in place of a dial */
};

/* Another process, and our session with it. */
struct gw_link {
    int dial;         /* or GW_LINK_NONE: not dialled */
    bool is_up;       /* there is a session: */
    bool was_up;      /* or there was one */
    uint16_t peer;    /* its number */
    uint32_t address; /* of the host there */
    /* Of ranks. */
    bool is_reached; /* the mesh has a way */
    bool is_wanted;  /* it waits for one */
    gw_time wanted_at;
};

struct gw_links {
    struct gw_links_cfg cfg;
    struct gw_link servers[GW_COMMUNICATOR_SERVERS_MAX];
    struct gw_link switch_;
    int home_switch_dial; /* of a home in this process, or GW_LINK_NONE */
    bool has_come;        /* servers were dialled */
    struct gw_link *ranks;
    struct gw_rate_meter rate; /* of what this rank sends, in payload */
    gw_time measure_at;        /* when paths are looked at next */
};

/* links_path.c */
/* The path to a server; to the home in this process. */
struct gw_path gw_links_path_server(const struct gw_links *links, uint32_t server);
struct gw_path gw_links_path_home(const struct gw_links *links);
/* Tells the mesh what is known of the path to a rank. */
void gw_links_set_path(struct gw_links *links, uint32_t rank);
/* Takes note of what has been sent, and from beat to beat of what neighbours have measured; true:
 * it is such a beat. */
bool gw_links_measure(struct gw_links *links, gw_time now);

#endif
