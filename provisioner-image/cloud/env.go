package cloud

// FromEnv reads a login from the OpenStack clients' environment variables.
func FromEnv(env map[string]string) (Login, error) {
	var l Login
	for _, f := range fields() {
		*f.at(&l) = first(env, f.vars)
	}
	return l, l.check("the environment")
}

func first(env map[string]string, names []string) string {
	for _, name := range names {
		if env[name] != "" {
			return env[name]
		}
	}
	return ""
}
