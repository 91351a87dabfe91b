/* A system that gives no more threads, as a container with a limit does. */
#ifndef NO_THREADS_H
#define NO_THREADS_H

/* While it is not 0, `pthread_create` fails in this program with EAGAIN. */
extern int no_threads;

#endif
