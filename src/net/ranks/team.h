/*
 * A team, as the ranks of a job that has no server, seen by one of
 * them. It sends flows from rank to rank, runs all-reduces over them (core/ranks/coll_run.h), and
 * has values that each rank keeps for all (team_store.h).
 *
 * All meet at rank 0: the others dial it, and when all have, it sends everybody the table of ranks
 * and addresses. Then each dials whom it needs: at once those that its all-reduces need, the lower
 * of two ranks being dialled, others when there is a message for them. Everything goes straight
 * from one process to the other; or, when a switch is given, by that switch, and only the sessions,
 * by which ranks know that the others live, are direct. Who finds that the job has failed tells
 * those whom it knows why, straight in any case.
 *
 * Use: open a station whose node address is cfg.address, and on which others may dial; open; then,
 * after every turn of the station, hand over the events of neighbours and poll. Calls are numbered
 * by the caller. All-reduces are started by all ranks in the same order, and may end in another.
 */
#ifndef GW_NET_TEAM_H
#define GW_NET_TEAM_H

#include "core/coll/coll.h"
#include "core/job.h"
#include "core/notice.h"
#include "core/host/transport.h"
#include "core/tensor.h"
#include "net/roles/overlay.h"
#include "net/ranks/team_values.h"

#define GW_TEAM_RATE_MIN_BPS UINT64_C(1000000)

#define GW_TEAM_MESSAGE_MAX (UINT64_C(1) << 36) /* bytes of a message */

enum {
    GW_TEAM_CALLS_MAX = 64, /* in work at the same time */
    GW_TEAM_TAG_MAX = (1 << 24) - 1,
    GW_TEAM_TEXT_MAX = 256,
};

struct gw_team_cfg {
    struct gw_station *station;
    uint32_t address;
    uint32_t job;
    uint16_t rank;
    uint16_t world;
    const char *join;    /* HOST:PORT of rank 0; not used by rank 0 itself */
    const char *switch_; /* HOST:PORT of the switch by which packets go; NULL: none */
    uint32_t mtu;        /* payload bytes of a full packet */
    uint64_t rate_bps;   /* of the links: windows and credit go by it; GW_TEAM_RATE_MIN_BPS to
                            GW_OVERLAY_RATE_MAX_BPS; 0: as measured */
    const struct gw_coll_ops *coll;
    struct gw_transport transport;
    gw_time stall;  /* without progress for so long, the job fails */
    uint8_t notice; /* gw_notice_option of the job's bursts: ranks that bring another are refused */
    struct gw_notice_path notice_path; /* rank 0: for the formula; all 0: as measured */
    uint64_t seed;
};

enum gw_team_event_kind {
    GW_TEAM_OPEN,    /* calls are taken */
    GW_TEAM_DONE,    /* a call has ended */
    GW_TEAM_REFUSED, /* a push or pull has been refused, and has changed nothing; `refusal`
                                says why */
    GW_TEAM_FAILED,  /* the job has failed; no more events follow */
    GW_TEAM_LEFT,    /* all ranks are leaving, and need nothing from us */
};

/* Why a push or pull is refused. */
enum gw_team_refused {
    GW_TEAM_UNKNOWN_KEY = 1, /* nobody has pushed it */
    GW_TEAM_OTHER_SHAPE,     /* the value has another count or type */
    GW_TEAM_SUM_OVERFLOW,    /* a sum of int32 does not fit an int32 */
    GW_TEAM_NO_MEMORY,       /* the rank that keeps the value has none for it */
};

struct gw_team_refusal {
    enum gw_team_refused why;
    uint32_t rank; /* that keeps the value */
    uint64_t key;
    bool is_pull;
    struct gw_team_value_shape asked, found; /* `found`: if the shape is another */
};

struct gw_team_event {
    enum gw_team_event_kind kind;
    uint64_t call;
    uint64_t bytes;            /* of a message received */
    enum gw_job_reason reason; /* of a failure; the words for it are gw_team_text() */
    struct gw_team_refusal refusal;
};

struct gw_team;

/*
 * Sets a transport up with defaults for sockets: processes are slow to answer, and real paths do
 * not trim unless our switches are on them. Returns 0, or GW_ERR_UNKNOWN or GW_ERR_INVALID (load
 * balancing that switches do) with `error` filled.
 */
int gw_team_transport(const char *cc, const char *lb, bool by_switch,
                      struct gw_transport *transport, char *error);

/* Returns 0; GW_ERR_INVALID (a world that the schedule does not allow), GW_ERR_NO_MEMORY, or what
 * dialling rank 0 gave, with `error` filled. */
int gw_team_open(const struct gw_team_cfg *cfg, struct gw_team **comm, char *error);

/* After the loop is closed: its packets go with the pool. */
void gw_team_close(struct gw_team *comm);

/* What rank 0 knows of the path now. The threshold of the job's bursts follows from what it knows
 * when all have come. */
void gw_team_set_notice_path(struct gw_team *comm, const struct gw_notice_path *path);

/* The threshold that bursts are announced with, in units; 0: they are not. Once the job is open. */
uint8_t gw_team_notice(const struct gw_team *comm);

/* Hands over an event of the station. */
void gw_team_neighbour(struct gw_team *comm, const struct gw_neighbour_event *event);

/*
 * Starts an all-reduce. Returns 0; GW_ERR_NO_ROOM (GW_TEAM_CALLS_MAX are in work); or
 * GW_ERR_INVALID (so large a tensor cannot be numbered).
 */
int gw_team_reduce(struct gw_team *comm, uint64_t call, const struct gw_tensor *tensor,
                   gw_time now);

/* A message to or from another rank; `data` is the team's until the call has ended. */
struct gw_team_message {
    uint64_t call;
    uint32_t rank;
    uint32_t tag; /* at most GW_TEAM_TAG_MAX; of messages between two ranks that are under
                     way at the same time, no two have the same */
    void *data;
    uint64_t bytes; /* to receive: at most so many; at least 1 */
    bool is_receive;
};

/* Starts a message. Returns 0 or GW_ERR_NO_ROOM. */
int gw_team_move(struct gw_team *comm, const struct gw_team_message *message, gw_time now);

/* A push to, or pull of, the value of a key; `data` is the team's until the call has ended.
 */
struct gw_team_store_call {
    uint64_t call;
    uint64_t key;
    void *data;                       /* read only by a push */
    struct gw_team_value_shape shape; /* at most GW_TEAM_MESSAGE_MAX bytes */
    bool is_pull;
};

/*
 * Starts a push or pull; it ends with GW_TEAM_DONE or GW_TEAM_REFUSED. Those to the
 * same rank are done in the order in which they are started. Returns 0 or GW_ERR_NO_ROOM.
 */
int gw_team_store(struct gw_team *comm, const struct gw_team_store_call *call, gw_time now);

/* Writes one line about a refusal. */
void gw_team_refusal(const struct gw_team_refusal *refusal, char *text, size_t size);

/* Whether events wait, or values that are to be added or copied here: poll again soon. */
bool gw_team_has_work(const struct gw_team *comm);

/* Ends the job for all because of something here, and drops all calls: their memory is the
 * caller's. GW_TEAM_FAILED follows, unless the job has failed before. */
void gw_team_abort(struct gw_team *comm, gw_time now);

/* Begins to leave; GW_TEAM_LEFT tells when we may go. No calls may be in work. */
void gw_team_leave(struct gw_team *comm, gw_time now);

/* The next event; false when there is none. */
bool gw_team_poll(struct gw_team *comm, struct gw_team_event *event, gw_time now);

/* Why the job has failed. */
const char *gw_team_text(const struct gw_team *comm);

/* Whether something that we owe to others, after a failure, is still under way. */
bool gw_team_is_busy(const struct gw_team *comm);

const struct gw_endpoint_stats *gw_team_stats(const struct gw_team *comm);

#endif
