# Nothing is cimported of it: a module by itself, which Python imports when a derivative is first asked for.
