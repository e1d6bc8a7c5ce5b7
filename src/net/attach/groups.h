/*
 * The multicast groups of a station: one for the neighbours of each job who have the same key, so
 * that what is for all of them leaves once. A group is a destination of the UDP datapath like a
 * neighbour, with a number behind those of the neighbours. Who does not hear it is sent to alone;
 * so nothing depends on a network that multicasts.
 */
#ifndef GW_NET_GROUPS_H
#define GW_NET_GROUPS_H

#include "net/datapath.h"
#include "wire/attach.h"

enum {
    GW_GROUP_NONE = UINT16_MAX,
};

/*
 * The first of `count` addresses in a row, for groups of a station that listens at the `ports`
 * ports from `listen` on, and whose node has this address. Stations have different ones, by chance;
 * where they are the same, cookies tell results apart.
 */
struct gw_sock_addr gw_groups_choose(const struct gw_sock_addr *listen, uint32_t ports,
                                     uint32_t node_address, uint32_t count);

struct gw_groups_cfg {
    struct gw_sock_addr first; /* of `count` addresses in a row */
    uint16_t count;
    uint16_t first_peer; /* number of the first for the datapath, which has `count` more */
};

struct gw_groups;

/* Returns NULL when there is no memory. */
struct gw_groups *gw_groups_open(const struct gw_groups_cfg *cfg);
void gw_groups_close(struct gw_groups *groups);

const struct gw_groups_cfg *gw_groups_cfg(const struct gw_groups *groups);

/*
 * A neighbour of a job has come, at `member`, with the key of this name: opens the job's group if
 * need be, and returns what the neighbour is to be told. Without a port: there is no group for it,
 * since all are in use or the job's others are reached by another interface.
 */
struct gw_attach_group gw_groups_add(struct gw_groups *groups, struct gw_datapath *datapath,
                                     uint16_t peer, uint32_t job, uint64_t key,
                                     const struct gw_sock_addr *member);

/* A neighbour has gone; with the last of a job goes its group. */
void gw_groups_remove(struct gw_groups *groups, struct gw_datapath *datapath, uint16_t peer);

/* The number, for the datapath, of the group that this neighbour was told, or GW_GROUP_NONE. */
uint16_t gw_groups_of(const struct gw_groups *groups, uint16_t peer);

/* Goes through the groups that have members and are to be probed, all, or `only_early` those that a
 * neighbour has come to lately: `to` is the address of the next one, and `member` a neighbour who
 * was told it; false: that was the last one. `*at` is 0 at first. */
bool gw_groups_next(struct gw_groups *groups, bool only_early, uint16_t *at,
                    struct gw_sock_addr *to, uint16_t *member);

#endif
