/*
 * The registrar of a job: collects its ranks, hands out the table of ranks when all have come, and
 * is where the end of the job is told. It lives at the job's home, the first server or the process
 * of rank 0, on the server's endpoint.
 *
 *     rank                       registrar                       other ranks
 *       |  (a session begins)          |                              |
 *       |----------------------------->|                              |
 *       |                       TABLE  |  TABLE                       |
 *       |<-----------------------------|----------------------------->|  when all have come
 *       |  FAILURE                     |  FAILURE                     |
 *       |----------------------------->|----------------------------->|  once
 *       |  BYE                         |                              |
 *       |----------------------------->|                         BYE  |
 *       |                              |<-----------------------------|
 *       |                       BYE    |  BYE                         |
 *       |<-----------------------------|----------------------------->|  when all have said so
 *
 * Each arrow is a message of its own flow, with a tag of core/ranks/mesh_wire.h. A rank whose
 * session ends before it has said BYE is lost: a failure. Who said BYE needs nobody, or waits until
 * nobody needs him. A job that has ended may begin again, with other processes.
 *
 * A rank that takes no message for as long as the endpoint tries is lost, too. Until all have come,
 * a rank may go without a word, and another process may take its place. All ranks of a job that
 * were killed and started again at once find their predecessors' seats taken, which are given up
 * one by one: so a job does not begin while it is in doubt whether one of its ranks is alive.
 *
 * It keeps no state that must outlive it: one that restarts sends the table again when all ranks
 * have found it again, and ranks that have it take no notice. If one of them is another process by
 * then, the job of those who have met is over: when somebody new has come or a job has begun,
 * nobody is taken in who has met others elsewhere. Who had a seat before without having met others
 * may be of either job; so when all have come, those whose table is another one are dismissed.
 */
#ifndef GW_CORE_REGISTRAR_H
#define GW_CORE_REGISTRAR_H

#include "core/allocator.h"
#include "core/host/endpoint.h"
#include "core/job.h"
#include "core/notice.h"
#include "core/ranks/ranks_table.h"

struct gw_registrar_cfg {
    struct gw_endpoint *endpoint; /* of the home; see gw_registrar_flows() */
    uint32_t job;
    uint16_t world;
    gw_time doubt; /* who was not heard for so long may be dead, and no job begins with it; 0: all
                      that have not gone are alive */
    bool is_bare;  /* messages carry no payload (simulation) */
    const struct gw_transport *transport; /* must outlive it */
};

/* A rank that has come, by its session. */
struct gw_registrar_rank {
    struct gw_rank_place place; /* where it is */
    uint16_t rank;
    uint8_t notice;      /* how it wants bursts announced: gw_notice_option */
    bool was_seated;     /* says that it had a seat, here or with a registrar before this one */
    uint32_t table;      /* says which table of ranks it has: gw_ranks_table_sum(); 0: none */
    struct gw_path path; /* to it */
};

enum gw_registrar_phase {
    GW_REGISTRAR_COLLECTING, /* the last rank moves it on */
    GW_REGISTRAR_RUNNING,    /* a failure, or the last BYE, moves it on */
    GW_REGISTRAR_ENDED,      /* the next rank that comes begins another collection */
};

struct gw_registrar;

/* Flows that it sends, and messages that it has memory posted for, at the same time. */
uint32_t gw_registrar_flows(uint32_t world);
uint32_t gw_registrar_awaits(uint32_t world);

size_t gw_registrar_size(uint16_t world);

/* Makes one in `memory`, aligned to 64. Never fails. */
struct gw_registrar *gw_registrar_init(void *memory, const struct gw_registrar_cfg *cfg);

/* Lets go of its flows; the memory is the caller's again. */
void gw_registrar_fini(struct gw_registrar *registrar);

/*
 * A rank has come, or, at the same address, the same process has come again. Returns GW_JOB_OK,
 * GW_JOB_RANK (the rank, or its address, is taken or 0, or the rank not below `world`),
 * GW_JOB_NOTICE (others announce differently), or GW_JOB_LOST (it has met others, in a job that is
 * over: another process is in place of a rank).
 */
enum gw_job_reason gw_registrar_come(struct gw_registrar *registrar,
                                     const struct gw_registrar_rank *rank, gw_time now);

/* The rank, which has this address, was alive at `at`. With cfg.doubt this is to be said from time
 * to time. */
void gw_registrar_hear(struct gw_registrar *registrar, uint32_t rank, uint32_t address, gw_time at,
                       gw_time now);

/*
 * The session of whoever had this address has ended; not if another one took its place. Returns
 * whether the job is over for it, whatever it thinks: should it come again, it is not the one that
 * is collected then.
 */
bool gw_registrar_gone(struct gw_registrar *registrar, uint32_t address, gw_time now);

/* What is known of the paths between ranks: the threshold of the job's bursts follows from what was
 * known when the last rank came; without a word of it, from the farthest of the ranks' paths. */
void gw_registrar_set_notice_path(struct gw_registrar *registrar,
                                  const struct gw_notice_path *path);

/* Takes an event of the endpoint; false: it is not about this registrar. */
bool gw_registrar_event(struct gw_registrar *registrar, const struct gw_event *event, gw_time now);

enum gw_registrar_phase gw_registrar_phase(const struct gw_registrar *registrar);

/* Ranks that have come and have not gone. */
uint32_t gw_registrar_present(const struct gw_registrar *registrar);

/* Whether something is under way to somebody: the home must not go yet. */
bool gw_registrar_is_busy(const struct gw_registrar *registrar);

#endif
