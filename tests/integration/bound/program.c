// Linked to a library that is linked to the driver. usage: program WAY
int plugin_run(const char *way);

int main(int count, char **arguments) {
    return count > 1 ? plugin_run(arguments[1]) : 1;
}
