package credentials

// FromEnv reads a login from the OpenStack clients' environment variables. OS_CLOUD leads to a
// clouds.yaml, and what else is set goes before what stands there.
func FromEnv(env map[string]string, files Files) (Login, error) {
	var f form
	for _, known := range fields() {
		*known.at(&f) = first(env, known.vars)
	}
	if f.cloud != "" {
		f.useClouds = "true"
	}
	return f.login("the environment", files)
}

func first(env map[string]string, names []string) string {
	for _, name := range names {
		if env[name] != "" {
			return env[name]
		}
	}
	return ""
}
