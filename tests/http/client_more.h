static void more(void) {}
