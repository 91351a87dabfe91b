#define _GNU_SOURCE /* RTLD_NEXT */
#include "no_threads.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

int no_threads;

/* A program's own function comes before the C library's, for shared libraries, too. */
int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument)
{
    int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    void *found;
    if (no_threads)
        return EAGAIN;
    found = dlsym(RTLD_NEXT, "pthread_create");
    if (found == NULL)
        return ENOSYS;
    /* ISO C has no conversion from one to the other. */
    memcpy(&real, &found, sizeof real);
    return real(thread, attributes, start, argument);
}
