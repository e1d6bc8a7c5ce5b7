/*
 * A process on the overlay: its memory, its datapath, its loop, and its sessions with neighbours.
 *
 * Use: open, add nodes to the loop, dial neighbours; then take turns, and after each poll what has
 * happened with neighbours. At GW_NEIGHBOUR_UP link the neighbour to a port (it can be sent to from
 * then on); at GW_NEIGHBOUR_DOWN its links are gone already.
 */
#ifndef GW_NET_STATION_H
#define GW_NET_STATION_H

#include "net/attach/groups.h"
#include "net/attach/neighbours.h"
#include "net/station/loop.h"
#include "net/node_memory.h"

/* Signs of life, of sessions and of jobs. */
#define GW_STATION_BEAT    (100 * GW_MS) /* between signs of life */
#define GW_STATION_SILENCE (2 * GW_S)    /* silent for so long is dead */
#define GW_STATION_DEAF    (60 * GW_S)   /* cut off for so long: perhaps all others are dead */

struct gw_station_cfg {
    const struct gw_datapath_ops *datapath; /* NULL: the first of datapath.def */
    const char *address;   /* ours, as text; NULL: any, of the family of `family_of` */
    const char *family_of; /* HOST:PORT of somebody that we shall dial; NULL: IPv4 */
    uint16_t port;         /* 0: any */
    uint16_t entropies;
    uint32_t packets; /* and as many buffers */
    uint32_t mtu;     /* payload bytes of a full packet */
    uint16_t peers_max;
    uint16_t places;        /* as in struct gw_neighbours_cfg */
    bool accepts;           /* others may dial us */
    bool insists;           /* as in struct gw_neighbours_cfg */
    bool serves_many;       /* as in struct gw_datapath_cfg */
    bool authenticates;     /* packets between neighbours are authenticated */
    bool encrypts;          /* and encrypted; not without `authenticates` */
    bool signals_by_option; /* as in struct gw_datapath_cfg */
    bool ignores_groups;    /* that neighbours tell us */
    uint64_t rate_bps;      /* of a switch's ports; 0: not known */
    uint32_t node_address;
    uint8_t role;              /* enum gw_attach_role */
    const struct gw_key *keys; /* key_count of them; copied */
    uint32_t key_count;
    struct gw_sock_addr group; /* multicast address of the first job, for those who dial us; of the
                                  others behind it; length 0, or a datapath without
                                  groups: nothing is multicast */
    uint16_t groups;           /* such addresses */
    struct gw_datapath_faults faults;
    int fds[GW_LOOP_FDS_MAX]; /* as in struct gw_loop_cfg */
    uint32_t fd_count;
};

struct gw_station;

/* Returns 0 and sets *station, or GW_ERR_* with `error` filled. */
int gw_station_open(const struct gw_station_cfg *cfg, struct gw_station **station, char *error);

/* Tells the neighbours, and closes datapath and loop; nodes are to be closed after it. */
void gw_station_close(struct gw_station *station);

/* Frees what is left of a closed station: the packets. */
void gw_station_free(struct gw_station *station);

/* Those whose keys it knows, in their order. */
const struct gw_tenants *gw_station_tenants(const struct gw_station *station);

/* Adds what a tenant has of the station; nobody else has anything of it. */
void gw_station_use(const struct gw_station *station, uint32_t who, struct gw_tenant_use *use);

struct gw_loop *gw_station_loop(struct gw_station *station);
struct gw_pkt_pool *gw_station_pool(struct gw_station *station);
const struct gw_datapath *gw_station_datapath(const struct gw_station *station);
struct gw_neighbours *gw_station_neighbours(struct gw_station *station);

/*
 * Wants a session with HOST:PORT from now on. Returns its number, or GW_ERR_INVALID or
 * GW_ERR_NO_ROOM with `error` filled.
 */
int gw_station_dial(struct gw_station *station, const char *name,
                    const struct gw_greeting *greeting, char *error);

/* Ends a session of those who dialled us. */
void gw_station_refuse(struct gw_station *station, uint16_t peer, enum gw_attach_reason reason);

/* As gw_loop_turn(). */
int gw_station_turn(struct gw_station *station, gw_time until, char *error);

/* Multicast groups, and the number of the first for the loop: behind those of neighbours. */
uint16_t gw_station_groups(const struct gw_station *station, uint16_t *first);

/* At GW_NEIGHBOUR_HEARS: number of the group that the neighbour hears now, or
 * GW_GROUP_NONE. */
uint16_t gw_station_hearing(const struct gw_station *station,
                            const struct gw_neighbour_event *event);

/* The next event of a neighbour; false: none. */
bool gw_station_poll(struct gw_station *station, struct gw_neighbour_event *event);

#endif
