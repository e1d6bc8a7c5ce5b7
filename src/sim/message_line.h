/*
 * A row of messages from one host to another, as over a few connections: each lane has one message
 * under way at a time, and the next one of the row follows in the lane that is free first, with the
 * window with which that lane's last one ended. So while the last packets of one message are
 * acknowledged another one is sent, and small messages do not wait for each other's round trips.
 * Messages under way share the link and end together, which is late for the first of them: so
 * large ones go alone (AHEAD_BDPS in message_line.c).
 *
 * Messages have no contents. What their packets are worth is drawn for each of them, from its
 * number and round, so that the same message always has the same important packets; the bitmap is
 * the lane's. A line belongs to the sending host.
 */
#ifndef GW_SIM_MESSAGE_LINE_H
#define GW_SIM_MESSAGE_LINE_H

#include "sim/message_books.h"
#include "workload/job_worth.h"

struct gw_sim_line_message {
    uint32_t tag;
    uint64_t bytes;
    uint32_t number; /* of the message, in each round */
    uint32_t round;
    uint8_t class;
    gw_time asked_at;
};

/* One connection. */
struct gw_sim_lane {
    uint64_t bytes;          /* of its message */
    gw_time asked_at;        /* likewise */
    uint64_t *important;     /* its packets; NULL: none were ever drawn */
    uint32_t important_room; /* words */
    uint64_t window;         /* bytes: with which its last message ended; 0: there was none */
    uint64_t memory;         /* what else that one left; see core/path.h */
    uint32_t flow;
    bool is_busy;
};

struct gw_sim_line {
    const struct gw_sim *sim;
    struct gw_path path;
    struct gw_notice_terms notice; /* how messages after an idle time are announced */
    const struct gw_job_worth *worth;
    gw_q16 bound;               /* of each message */
    uint64_t seed;              /* of what is drawn */
    struct gw_sim_books *books; /* of the sender's partition */
    struct gw_sim_lane *lanes;
    struct gw_sim_line_message *row; /* [next, count) have not been sent */
    uint64_t under_way;              /* bytes of the messages of all lanes */
    uint32_t from, to;               /* hosts */
    uint32_t lane_count;
    uint32_t next, count, room;
};

struct gw_sim_line_cfg {
    struct gw_sim *sim;
    uint32_t from, to;
    uint32_t lanes;
    struct gw_notice_terms notice;
    const struct gw_job_worth *worth; /* must outlive the line */
    gw_q16 bound;
    uint64_t seed;
    struct gw_sim_books *books;
};

void gw_sim_line_open(struct gw_sim_line *line, const struct gw_sim_line_cfg *cfg);
void gw_sim_line_close(struct gw_sim_line *line);

/* Puts a message at the end of the row, and sends what can be sent. */
void gw_sim_line_send(struct gw_sim_line *line, struct gw_sim_line_message message, gw_time now);

/* A message of the line has been sent: its lane takes the next one. */
void gw_sim_line_sent(struct gw_sim_line *line, const struct gw_event *event, gw_time now);

#endif
