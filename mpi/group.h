/*
 * What Gradwire has of a communicator: a job, and the sums in it.
 *
 * A group is an attribute of its communicator and exists from the first sum that is asked for; it
 * opens its job in a call that all ranks of the communicator wait in anyway, gw_group_open(). Sums
 * end in gw_groups_progress(), which whoever waits calls again and again. Functions that return a
 * code return MPI's. Any thread may call.
 */
#ifndef GW_MPI_GROUP_H
#define GW_MPI_GROUP_H

#include <gradwire.h>
#include <mpi.h>
#include <stdbool.h>

struct gw_group;

/* What is to be summed: out[i] = in[i] of all ranks. */
struct gw_sum_args {
    const void *in;
    void *out;
    size_t count; /* elements */
    enum gradwire_type type;
};

/* The group of a communicator, or NULL; `makes` it if there is none and Gradwire can serve it. */
struct gw_group *gw_group_of(MPI_Comm comm, bool makes);

/* Whether gw_group_open() has been called. */
bool gw_group_is_open(const struct gw_group *group);

/* Collective. Opens the job on all ranks, or fails on all. */
int gw_group_open(struct gw_group *group);

/* Collective, of a group that is open: sums and waits, or hands out a request. */
int gw_group_sum(struct gw_group *group, const struct gw_sum_args *args);
int gw_group_sum_start(struct gw_group *group, const struct gw_sum_args *args,
                       MPI_Request *request);

/* Collective. Ends the sums in work, then the job, and frees the group. */
void gw_group_leave(struct gw_group *group);

/* Leaves all groups, in the order in which they were opened, which no two ranks see differently. */
void gw_groups_leave(void);

/* Ends requests whose sums have ended; false: no sum is in work. */
bool gw_groups_progress(void);

/* Sleeps until a sum may have ended, or for so short that MPI goes on. */
void gw_groups_pause(void);

/* The code of an MPI function that may have taken back requests of ours: an error of theirs, if it
 * has none of its own. */
int gw_groups_code(int code);

#endif
