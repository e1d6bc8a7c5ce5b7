/*
 * The mesh: the ranks of a job, as one of them sees them. Where they are, which can be reached, and
 * how the job fails or ends for all. Calls go over it: messages.h, store.h, coll_run.h.
 *
 * A rank meets the others by its registrar (registrar.h), which sends the table of ranks. From then
 * on it sends flows to any rank to which there is a *way*. Ways are the driver's: in processes a
 * session with the other process, or the switch; the mesh says which rank it wants one to
 * (GW_MESH_WANTS), and is told when it is there. Who finds that the job has failed tells the
 * registrar, which tells everybody, and all ranks to which it has a way, since the registrar may be
 * gone.
 *
 * Tags of messages are in mesh_wire.h; they do not name the job, so of two jobs no two pairs of
 * ranks, or of rank and registrar, may share their endpoints. Use: init, say where the registrar
 * is, hand over the endpoint's events and poll after each; call expire at the deadline. In all
 * states: what was told to others is still under way after the last event.
 */
#ifndef GW_CORE_MESH_H
#define GW_CORE_MESH_H

#include "core/host/endpoint.h"
#include "core/job.h"
#include "core/ranks/ranks_table.h"

struct gw_mesh_cfg {
    struct gw_endpoint *endpoint; /* of this rank; see gw_mesh_flows() */
    uint32_t address;             /* its own */
    uint32_t job;
    uint16_t rank;
    uint16_t world;
    bool has_ways;                        /* every rank can be reached without asking */
    bool is_bare;                         /* messages carry no payload (simulation): what the table
                                             says comes by gw_mesh_know() */
    uint8_t class;                        /* of its messages */
    const struct gw_transport *transport; /* of flows; must outlive it */
    gw_time stall;                        /* meeting for so long fails, and so long lasts leaving
                                             without the registrar; 0: the one never, the other
                                             not at all */
};

enum gw_mesh_state {
    GW_MESH_MEETING, /* the table moves it on */
    GW_MESH_MET,     /* leaving, or a failure, moves it on */
    GW_MESH_LEAVING, /* that all others leave too */
    GW_MESH_OVER,
};

enum gw_mesh_event_kind {
    GW_MESH_EVENT_MET,    /* the table is known */
    GW_MESH_EVENT_WANTS,  /* a way to `rank` */
    GW_MESH_EVENT_FAILED, /* the job has, for `reason`, which is about `about`; the last event */
    GW_MESH_EVENT_LEFT,   /* nobody needs us: we may go; the last event */
};

struct gw_mesh_event {
    enum gw_mesh_event_kind kind;
    uint32_t rank;
    enum gw_job_reason reason;
    uint32_t about;    /* rank, or `world`: nobody that is known */
    uint32_t found_by; /* the rank that found it, or `world`: the registrar */
};

struct gw_mesh;

/* Flows that the mesh itself sends, and messages that it has memory posted for, at the same time:
 * for the endpoint's limits, to which those of calls come. */
uint32_t gw_mesh_flows(uint32_t world);
uint32_t gw_mesh_awaits(uint32_t world);

size_t gw_mesh_size(uint16_t world);

/* Makes one in `memory`, aligned to 64. Never fails. */
struct gw_mesh *gw_mesh_init(void *memory, const struct gw_mesh_cfg *cfg, gw_time now);

/* Lets go of its flows; the memory is the caller's again. */
void gw_mesh_fini(struct gw_mesh *mesh);

/* Where the registrar is, and the path to it: at first, and when it has come back. Paths to ranks
 * of which nothing is known count as this one. */
void gw_mesh_set_registrar(struct gw_mesh *mesh, uint32_t address, const struct gw_path *path,
                           gw_time now);

/* It has gone, and may come back. A job that has met goes on without it. */
void gw_mesh_registrar_down(struct gw_mesh *mesh, gw_time now);

/* Without payload: what the table will say. It counts when the registrar's message has come. */
void gw_mesh_know(struct gw_mesh *mesh, const struct gw_rank_place *places, uint8_t notice_units,
                  gw_time now);

/* There is a way to a rank. False: the address is not the rank's by the table, or another one's:
 * the driver must not use that way. Before the table is known it is believed until then. */
bool gw_mesh_way_up(struct gw_mesh *mesh, uint32_t rank, uint32_t address, gw_time now);

/* There is none any more. `is_lost`: since the process has gone, which fails a job that has met and
 * is not leaving; else the mesh wants another when it needs one. */
void gw_mesh_way_down(struct gw_mesh *mesh, uint32_t rank, bool is_lost, gw_time now);

/* What is known of the path to a rank now. */
void gw_mesh_set_path(struct gw_mesh *mesh, uint32_t rank, const struct gw_path *path);

/* Where a rank is; NULL before the table is known. */
const struct gw_rank_place *gw_mesh_place(const struct gw_mesh *mesh, uint32_t rank);

/* gw_ranks_table_sum() of the table; 0: it is not known yet. */
uint32_t gw_mesh_table(const struct gw_mesh *mesh);

/* Addresses of all ranks, once the table is known; as long as the mesh. */
const uint32_t *gw_mesh_addresses(const struct gw_mesh *mesh);

/* The path to the farthest rank that is reached, at the least rate to any; to the registrar, if
 * there is none. */
struct gw_path gw_mesh_path_all(const struct gw_mesh *mesh);

/* How the job's bursts to other ranks are announced; the threshold comes with the table. */
struct gw_notice_terms gw_mesh_notice(const struct gw_mesh *mesh);

enum gw_mesh_state gw_mesh_state(const struct gw_mesh *mesh);

/* The rank that has the address; `world`: nobody. */
uint32_t gw_mesh_rank_of(const struct gw_mesh *mesh, uint32_t address);

/* Whether there is a way to the rank, or it is this one. If not, and `wants`, one is wanted from
 * now on. */
bool gw_mesh_reaches(struct gw_mesh *mesh, uint32_t rank, bool wants);

/* Starts a flow to another rank. Returns 0, or GW_ERR_NO_ROOM: try again, after an event of the
 * endpoint, or when there is a way, which is wanted. */
int gw_mesh_send(struct gw_mesh *mesh, uint32_t rank, uint32_t tag, const void *data,
                 uint64_t bytes, uint32_t *flow, gw_time now);

/* Posts memory for a message of a rank. Returns as gw_endpoint_expect(). */
int gw_mesh_expect(struct gw_mesh *mesh, uint32_t rank, uint32_t tag, void *data, uint64_t bytes);

/* The same for a message that may lose a part, with all but peer, path and notice filled in; `rank`
 * is the other one. */
int gw_mesh_send_part(struct gw_mesh *mesh, uint32_t rank, const struct gw_send *send,
                      uint32_t *flow, gw_time now);
int gw_mesh_expect_part(struct gw_mesh *mesh, uint32_t rank, const struct gw_expect *expect);

/* Drops the flows that read or write this memory: it is the caller's again. */
void gw_mesh_forget(struct gw_mesh *mesh, const void *data, uint64_t bytes);

/* Others may need us until they leave, too: a message went to or came from another rank past
 * gw_mesh_send(), gw_messages_event() and gw_store_event(), or we have results of sums. */
void gw_mesh_note_message(struct gw_mesh *mesh);

/* Ends the job for this rank, and tells the others. The first failure counts. */
void gw_mesh_fail(struct gw_mesh *mesh, enum gw_job_reason reason, uint32_t about, gw_time now);

/* Says BYE, from stall to stall. GW_MESH_EVENT_LEFT follows when everybody has; if nothing
 * was noted as above, and there was no way to another rank, as soon as the registrar has ours, or
 * is gone: then nobody can need us. */
void gw_mesh_leave(struct gw_mesh *mesh, gw_time now);

/* Takes an event of the endpoint; false: it is not about the mesh itself. A flow to a rank that
 * fails, whoever sent it, fails the job: hand those over after whoever sent it. */
bool gw_mesh_event(struct gw_mesh *mesh, const struct gw_event *event, gw_time now);

/* The next event; false: none. */
bool gw_mesh_poll(struct gw_mesh *mesh, struct gw_mesh_event *event);

/* Whether a failure, or BYE, is still under way to somebody. */
bool gw_mesh_is_busy(const struct gw_mesh *mesh);

gw_time gw_mesh_deadline(const struct gw_mesh *mesh);
void gw_mesh_expire(struct gw_mesh *mesh, gw_time now);

#endif
