/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * weft/charcoal.h: weft/activity.h under short names, which are Charcoal's if it has them. None of these functions may
 * be called in a signal handler.
 */
#ifndef WEFT_CHARCOAL_H
#define WEFT_CHARCOAL_H

#include <weft/activity.h>

typedef weft_activity_t activity_t;
typedef weft_activity_sem_t activity_sem_t;
typedef weft_activity_mail_t activity_mail_t;

WEFT_EXTERN_C_BEGIN
/* These are functions, because a macro would replace std::this_thread::yield and methods of that name. */
WEFT_API void yield(void) __asm__("weft_activity_yield");
WEFT_API void yield_now(void) __asm__("weft_activity_give_way");
WEFT_EXTERN_C_END

#define activate(...) weft_activate(__VA_ARGS__)
#define activate_detached(...) weft_activate_detached(__VA_ARGS__)
#define no_yield weft_no_yield
#define no_yield_expr(e) weft_no_yield_expr(e)
#define NO_YIELD WEFT_NO_YIELD
#define no_implicit_yield weft_no_implicit_yield
#define activity_self() weft_activity_self()
#define activity_wait(a) weft_activity_wait(a)
#define activity_cancel(a) weft_activity_cancel(a)
#define activity_detach(a) weft_activity_detach(a)
#define activity_result(a) weft_activity_result(a)
#define activity_set_result(r) weft_activity_set_result(r)
#define activity_sleep_ns(n) weft_activity_sleep(n)
#define activity_mail_init(m, n) weft_activity_mail_init(m, n, 0)
#define activity_send(m, p) weft_activity_send(m, p)
#define activity_receive(m, p) weft_activity_receive(m, p)
#define activity_sem_init(s, n) weft_activity_sem_init(s, n)
#define activity_sem_wait(s) weft_activity_sem_wait(s)
#define activity_sem_post(s) weft_activity_sem_post(s)

WEFT_EXTERN_C_BEGIN
/**
 * Runs `first` as the first activity of a group, as the main of a program whose activity_main is `first` does.
 * @return  the result of `first`, or 1, after a line on standard error, if the group could not run to its end
 */
WEFT_API int weft_activity_main(int (*first)(void), int argc, char **argv);
/* `activate` without parentheses is not the macro, but this declaration. */
extern int activate __attribute__((unavailable("write activate(&handle, variables...) { ... }")));
WEFT_EXTERN_C_END

/*
 * A program that defines `int activity_main(…)` in place of main, with the parameters that main may have, gets a main
 * that runs it as the first activity. A declaration may precede the definition: all declarations and definitions of a
 * file produce a single main, which is weak.
 */
#define WEFT__MAIN                                                                                                     \
	".ifndef weft.main\n.set weft.main, 1\n.pushsection .text.startup, \"ax\", @progbits\n.weak main\n"            \
	".type main, @function\nmain: .byte 0xf3, 0x0f, 0x1e, 0xfa\njmp weft__activity_main@PLT\n.size main, . - "     \
	"main\n"                                                                                                       \
	".popsection\n.endif"
#define activity_main(...)                                                                                             \
	weft__first_activity(__VA_ARGS__) __asm__("weft__first_activity") __attribute__((visibility("default")));      \
	__asm__(WEFT__MAIN);                                                                                           \
	int weft__first_activity(__VA_ARGS__)

#endif
