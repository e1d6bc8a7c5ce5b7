/*
 * Where the ranks of a communicator meet: the name of their job and the address of its rank 0, on
 * which all agree by MPI before anybody opens it.
 */
#ifndef GW_MPI_MEETING_H
#define GW_MPI_MEETING_H

#include <gradwire.h>
#include <mpi.h>

enum {
    GW_MEETING_TEXT_MAX = 256,
};

/* Sent as bytes from rank 0 to the others. */
struct gw_meeting {
    char job[GW_MEETING_TEXT_MAX];   /* no other job has this name */
    char join[GW_MEETING_TEXT_MAX];  /* HOST:PORT of rank 0; "": servers are given, join those */
    char error[GW_MEETING_TEXT_MAX]; /* why rank 0 has no address; "": it has one */
    int hosts;                       /* on which the ranks are */
    /* Behind what is sent. */
    int held; /* at rank 0 a socket by which the port is nobody else's; or -1 */
};

/*
 * Collective, and ends when all ranks have come; MPI makes progress meanwhile. `options` say what
 * the environment does. Returns MPI's error. Without one, let go right before you open the job.
 */
int gw_meeting_agree(MPI_Comm comm, const struct gradwire_options *options,
                     struct gw_meeting *meeting);

/* Rank 0 is about to open the job, or there is none. */
void gw_meeting_let_go(struct gw_meeting *meeting);

#endif
