/*
 * The home of jobs: a parameter server, with a switch of its own in front of it unless the fabric
 * has switches. The workers' sessions make its links and open its jobs.
 *
 *     workers --- neighbours --- switch --- server        adds_up
 *     workers --- neighbours --- server                   direct, or by the fabric's switches
 */
#ifndef GW_NET_OVERLAY_HOME_H
#define GW_NET_OVERLAY_HOME_H

#include "net/roles/overlay_server.h"
#include "net/roles/overlay_switch.h"
#include "net/station/station.h"

struct gw_overlay_home_cfg {
    struct gw_station *station;
    uint32_t server_address; /* as the station's */
    uint32_t switch_address;
    bool adds_up;   /* has a switch of its own */
    uint16_t ports; /* of it */
    uint32_t aggregators;
    uint32_t jobs_max;
    uint32_t mtu;    /* payload bytes of a full packet */
    uint16_t values; /* elements per fragment */
    uint16_t window; /* fragments of each worker; a power of two */
};

struct gw_overlay_home;

/* Returns 0, GW_ERR_INVALID or GW_ERR_NO_MEMORY. */
int gw_overlay_home_open(const struct gw_overlay_home_cfg *cfg, struct gw_overlay_home **home);

/* After the station is closed. */
void gw_overlay_home_close(struct gw_overlay_home *home);

/*
 * A neighbour that has dialled us came or went. One that is of no use to us is refused: then the
 * line in `why` says so (GW_NET_ERROR_MAX bytes; else it is empty).
 */
void gw_overlay_home_neighbour(struct gw_overlay_home *home, const struct gw_neighbour_event *event,
                               char *why);

/* Links a worker of this process, and serves its job. Returns 0 or the error of adding it. */
int gw_overlay_home_join(struct gw_overlay_home *home, struct gw_loop_port worker, uint32_t address,
                         const struct gw_greeting *greeting);

/* What leaves the server goes to this neighbour: the fabric's nearest switch. */
void gw_overlay_home_way_out(struct gw_overlay_home *home, uint16_t peer);

/*
 * To be called several times in GW_STATION_SILENCE, except by a home with workers of its own
 * process: whose session is alive is not lost, and a job of which no session is left is forgotten.
 */
void gw_overlay_home_look(struct gw_overlay_home *home);

struct gw_overlay_server *gw_overlay_home_server(struct gw_overlay_home *home);

/* NULL: it has none. */
const struct gw_overlay_switch *gw_overlay_home_switch(const struct gw_overlay_home *home);

#endif
