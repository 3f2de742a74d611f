package credentials

// FromEnv reads a login from the environment variables of the OpenStack clients. OS_CLOUD names an entry of a
// clouds.yaml. A variable that is set takes precedence over the clouds.yaml.
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
