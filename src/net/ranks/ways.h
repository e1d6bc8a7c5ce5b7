/*
 * Ways of a rank to others, as its mesh wants them: sessions of its process with servers, its
 * switch and other ranks, and what is measured of the paths.
 *
 * The way out is the switch, if one is given; else the session with the first server, whose own
 * switch carries what has no straight way. Without a switch, packets to the other servers, and to
 * ranks with which there is a session, go straight. With one, flows go by the switch, and sessions
 * between ranks are signs of life, by which each also hears of the other's links. The home of the
 * job may be in this process; then others have their sessions with it.
 *
 * Who is dialled: the servers, once the switch is there; and ranks that the mesh wants a way to,
 * where their locators say. One that has no locator, or no session for a second, is reached by the
 * way out. When the job has failed, the word of it goes straight wherever there is a session.
 *
 * Use: open, then after every turn of the station hand over the events of neighbours, tell which
 * ranks the mesh wants, and call turn.
 */
#ifndef GW_NET_WAYS_H
#define GW_NET_WAYS_H

#include "core/calls/communicator.h"
#include "net/roles/overlay_home.h"

struct gw_ways_cfg {
    struct gw_station *station;
    struct gw_endpoint *endpoint; /* of the rank */
    struct gw_loop_port port;     /* of that endpoint */
    struct gw_communicator *comm;
    struct gw_overlay_home *home; /* in this process; NULL: it is not */
    uint32_t home_address;        /* of the server there */
    uint32_t address;             /* of the rank */
    uint32_t job;
    uint16_t rank;
    uint16_t world;
    uint8_t notice;       /* gw_notice_option of the job's bursts */
    const char **servers; /* HOST:PORT of each, without a home of its own; must outlive it */
    uint32_t server_count;
    bool is_home_rank_0; /* the first server is the process of rank 0: when it goes, so does it */
    const char *switch_; /* HOST:PORT; NULL: none */
    uint32_t mtu;
    uint64_t rate_bps; /* GW_OVERLAY_RATE_MIN_BPS to GW_OVERLAY_RATE_MAX_BPS; 0: as measured */
};

struct gw_ways;

/* Returns 0, GW_ERR_NO_MEMORY, or what dialling gave, with `error` filled. */
int gw_ways_open(const struct gw_ways_cfg *cfg, struct gw_ways **ways, char *error);
void gw_ways_close(struct gw_ways *ways);

/* Takes an event of the station, after a home in this process has if it is about somebody who has
 * dialled us. False: there can be no job, and `error` says why. */
bool gw_ways_neighbour(struct gw_ways *ways, const struct gw_neighbour_event *event, char *error);

/* The mesh wants a way to that rank. */
void gw_ways_want(struct gw_ways *ways, uint32_t rank);

/* Finds ways to whom no session came about, measures, and has the home here look around. To be
 * called after every turn of the station. */
void gw_ways_turn(struct gw_ways *ways);

/* From now on all packets go straight to those with whom there are sessions. */
void gw_ways_go_straight(struct gw_ways *ways);

/* Whether a switch is given, and is silent. */
bool gw_ways_is_cut_off(const struct gw_ways *ways);

/* Whether a switch on the way of any rank has been silent for so long, as far as that is known;
 * `name` says where it is. */
bool gw_ways_finds_silent_switch(const struct gw_ways *ways, gw_time least,
                                 char name[GW_NEIGHBOURS_NAME_MAX]);

/* The first server without a session; server_count: all have one, or the home is here. */
uint32_t gw_ways_silent_server(const struct gw_ways *ways);

/* Why that server has refused us last; GW_ATTACH_OK: it has not. */
enum gw_attach_reason gw_ways_refusal(const struct gw_ways *ways, uint32_t server);

/* The same of the switch. */
enum gw_attach_reason gw_ways_switch_refusal(const struct gw_ways *ways);

#endif
