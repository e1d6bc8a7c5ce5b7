/*
 * The home of jobs: a parameter server, with a switch of its own in front of it unless the fabric
 * has switches. The ranks' sessions make its links and open its jobs; those that say so are told to
 * the job's registrar, which is here.
 *
 *     ranks --- neighbours --- switch --- server        adds_up
 *     ranks --- neighbours --- server                   straight, or by the fabric's switches
 *
 * While the fabric's nearest switch is silent, what the server says goes straight to those who have
 * a session with it: so a job can still end with a word.
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
    uint32_t job_share;                /* as of the switch */
    uint32_t ranks_max;                /* of all jobs together */
    gw_time stall;                     /* of a rank that takes no message */
    uint64_t rate_bps;                 /* of the links, as this process was told; 0: as measured */
    struct gw_notice_path notice_path; /* of the jobs' bursts; rate 0: as measured */
    uint32_t mtu;                      /* payload bytes of a full packet */
    uint16_t values;                   /* elements per fragment */
    uint16_t window;                   /* fragments of each worker, a power of two; 0: as many as
                                          gw_overlay_window() says */
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

/*
 * Links a worker of this process, which is a rank of the job that the greeting is about. Returns 0;
 * GW_ERR_INVALID (neighbours that have come before it say otherwise: another world or option of
 * notices, or one is this rank); or another error of adding the job.
 */
int gw_overlay_home_join(struct gw_overlay_home *home, struct gw_loop_port worker, uint32_t address,
                         const struct gw_greeting *greeting);

/* The first rank of the job that has no session with this process, and is not its own; the job's
 * number of ranks: there is none. */
uint32_t gw_overlay_home_missing(const struct gw_overlay_home *home, uint32_t job, uint16_t world);

/* The session of the fabric's nearest switch is up, by which everything that leaves the server
 * goes; or it has ended. */
void gw_overlay_home_way_out(struct gw_overlay_home *home, uint16_t peer);
void gw_overlay_home_cut_off(struct gw_overlay_home *home);

/* To be called after every turn of the station. */
void gw_overlay_home_poll(struct gw_overlay_home *home);

/*
 * To be called several times in GW_STATION_SILENCE: whose session is alive is not lost, and a job
 * of which no worker is left is forgotten.
 */
void gw_overlay_home_look(struct gw_overlay_home *home);

/* Adds what a tenant has of the server's places for jobs, and of its own switch's aggregators. */
void gw_overlay_home_use(const struct gw_overlay_home *home, uint32_t who,
                         struct gw_tenant_use *use);

struct gw_overlay_server *gw_overlay_home_server(struct gw_overlay_home *home);

/* NULL: it has none. */
const struct gw_overlay_switch *gw_overlay_home_switch(const struct gw_overlay_home *home);

#endif
