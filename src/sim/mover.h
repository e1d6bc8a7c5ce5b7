/*
 * Movers: ways to take pieces of gradients from every worker of a job to the others and to bring
 * the sums back. A mover is one file with one table of functions, and a line in mover.def for each
 * `via` that it serves.
 *
 * The engine (job_train.c) asks a mover to join a member, then to move pieces, as many at a time as
 * the mover has room for; the mover says when a piece is done. All run in the partition of the
 * member's host: a mover touches only what belongs to the host that it is called for, and speaks to
 * other hosts by packets.
 *
 * Events. An application or a message of a mover has a tag in [job->first_tag, + ops->tags()).
 * Events with such a tag come to ops->event() of the job, at the host where they happened; those of
 * communicators, whose tags are others, to the job that has claimed the host (struct gw_sim_app).
 *
 * Berths. A piece under way is called by its berth, a number below job->room that the engine chose;
 * member->pieces[berth] is the piece. Berths are the member's own: other members have the same
 * piece in other berths, but under the same piece.id.
 */
#ifndef GW_SIM_MOVER_H
#define GW_SIM_MOVER_H

#include "sim/jobs_impl.h"

struct gw_sim_mover_ops {
    const char *name;
    /* All members must hand over the same pieces in the same order. */
    bool same_order;
    /* Pieces travel as flows, of any length. */
    bool sends_messages;
    /* It makes the values that it moves, and checks them; members have none for it. */
    bool has_contents;
    /* Members say when a piece has left them (gw_sim_piece_sent), and have its credit back then. */
    bool tells_sent;
    /* Says in job->books what becomes of its messages. */
    bool keeps_books;
    /* Pieces that a member may have under way; at least 1. */
    uint32_t (*room)(const struct gw_sim *sim, const struct gw_job_spec *spec, uint32_t pieces);
    /* Tags that a job needs, with so much room. */
    uint64_t (*tags)(const struct gw_sim *sim, const struct gw_job_spec *spec, uint32_t room);
    /* Adds what the job's workers and servers need of their hosts; `demands` by host. */
    void (*demand)(const struct gw_sim *sim, const struct gw_job_spec *spec, uint32_t room,
                   struct gw_sim_demand *demands);
    /* The largest part of a message that may be missing, by its tag; NULL: none may. */
    gw_q16 (*bound)(const struct gw_sim_job *job, uint32_t tag);
    /* Before the run, on hosts that exist. Returns 0, or an error, with `why` set or still empty.
     */
    int (*open)(struct gw_sim *sim, uint32_t job, char *why);
    /* Frees what is left; endpoints are gone. */
    void (*close)(struct gw_sim *sim, uint32_t job);

    /* The job's time has come: the member joins, or joins again what it is not part of. Ends with
     * gw_sim_member_joined(). False when the endpoint has no room: called again soon. NULL: there
     * is nothing to join. */
    bool (*join)(struct gw_sim_part *part, struct gw_sim_member *member, gw_time now);
    /* Moves a piece. Ends with gw_sim_piece_done() or gw_sim_member_failed(), at once or later. */
    void (*move)(struct gw_sim_part *part, struct gw_sim_member *member, uint32_t berth,
                 gw_time now);
    /* All iterations are done; NULL: nobody needs to know. With says_left the member is only done
     * at gw_sim_member_left(). */
    void (*leave)(struct gw_sim_part *part, struct gw_sim_member *member, gw_time now);
    bool says_left;
    /* An event of the job, on the host `node`. */
    void (*event)(struct gw_sim_part *part, struct gw_sim_node *node, uint32_t job,
                  const struct gw_event *event, gw_time now);
    /* On the host of the job's first server: it is time to look whether the member is alive; see
     * gw_sim_member_news(). */
    void (*heard)(struct gw_sim_part *part, struct gw_sim_member *member, gw_time now);
    /* For movers with timers of their own; NULL: none. When `expire` must be called for a member;
     * asked after every call of the above for it. */
    gw_time (*deadline)(const struct gw_sim *sim, const struct gw_sim_member *member);
    void (*expire)(struct gw_sim_part *part, struct gw_sim_member *member, gw_time now);

    /* In the serial phase: the host of a member crashes. The mover frees what it had there, without
     * a word to the endpoint, and sets member->mover to NULL. The engine fails the member. */
    void (*member_crashed)(struct gw_sim *sim, struct gw_sim_member *member, gw_time now);
    /* Likewise, and back again, for the servers of a job on a host; NULL: it has none. */
    void (*servers_crashed)(struct gw_sim *sim, uint32_t job, uint32_t place, gw_time now);
    void (*servers_restarted)(struct gw_sim *sim, uint32_t job, uint32_t place);

    /* Bytes of gradients of which a member has the sums, also of pieces under way; NULL: nothing is
     * known of these. */
    uint64_t (*back)(const struct gw_sim *sim, const struct gw_sim_member *member);

    /* Adds what the mover counted to a result; NULL: nothing. */
    void (*results)(const struct gw_sim *sim, uint32_t job, struct gw_job_result *result);
    /* What became of a call of the job's list; NULL: it has none. */
    void (*call)(const struct gw_sim *sim, uint32_t job, uint32_t index,
                 struct gw_call_result *result);
};

/* The mover of a `via`. */
const struct gw_sim_mover_ops *gw_sim_mover_of(enum gw_job_via via);

/* What movers call, on the member's own host. */
void gw_sim_member_joined(struct gw_sim_part *part, struct gw_sim_member *member, gw_time now);
/* With tells_sent: once for each piece, before it is done. */
void gw_sim_piece_sent(struct gw_sim_part *part, struct gw_sim_member *member, uint32_t berth,
                       gw_time now);
void gw_sim_piece_done(struct gw_sim_part *part, struct gw_sim_member *member, uint32_t berth,
                       gw_time now);
void gw_sim_member_failed(struct gw_sim_part *part, struct gw_sim_member *member,
                          enum gw_job_reason reason, uint32_t about, gw_time now);

void gw_sim_member_left(struct gw_sim_part *part, struct gw_sim_member *member, gw_time now);

/* The member of a job on a host; NULL: it has none. */
struct gw_sim_member *gw_sim_member_at(const struct gw_sim *sim, const struct gw_sim_node *node,
                                       uint32_t job);

/* In the serial phase: calls a member at `at`, if not earlier. */
void gw_sim_member_wake_by(struct gw_sim *sim, struct gw_sim_member *member, gw_time at);

/* The job's first server hears of the member at `at`: in a run that takes one thread, a window from
 * now at the earliest, or in the serial phase. */
void gw_sim_member_news(struct gw_sim *sim, struct gw_sim_member *member, gw_time at);

/* Likewise, for movers that notice no death by themselves: a host of the job has died. Its members
 * fail for it after job.silence, as if connections broke. */
void gw_sim_job_mourn(struct gw_sim *sim, const struct gw_sim_job *job, enum gw_job_reason reason,
                      uint32_t about, gw_time now);

/* Bytes of the largest piece of a job, at most. */
uint64_t gw_sim_piece_max(const struct gw_sim *sim, const struct gw_job_spec *spec);

/* The class of a layer's gradients. */
uint8_t gw_sim_class_of(const struct gw_sim_job *job, uint32_t layer);

/* Elements of a piece's values in member->in and member->out; 0 when there are none. */
uint64_t gw_sim_piece_first(const struct gw_sim_job *job, const struct gw_piece *piece);

/*
 * Elements of a piece that server `server` of the job adds up, and where in the piece they begin.
 * A small piece has one server, larger ones are divided among all.
 */
uint64_t gw_sim_piece_part(const struct gw_job_spec *spec, const struct gw_piece *piece,
                           uint32_t server, uint64_t *first);

#endif
