/* A sendmsg() that finds no room when it is told so; see full_socket.h. */
#include "full_socket.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static uint32_t refused_every, calls;

void gw_test_full_socket(uint32_t every)
{
    refused_every = every;
    calls = 0;
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    if (!refused_every || ++calls % refused_every != 0)
        return syscall(SYS_sendmsg, fd, message, flags);
    errno = EAGAIN;
    return -1;
}
