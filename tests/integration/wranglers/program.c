// A program with a wrangler of its own, or with that of a library that it is linked to.
int plugin_run(const char *way);

int main(void) {
    return plugin_run("linked");
}
