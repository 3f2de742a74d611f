{{- /* An image of the registry: {root, name, image}, image being its tag or digest */ -}}
{{- define "flex.reference" -}}
{{- $name := printf "%s/%s" .root.Values.registry .name }}
{{- if .image.digest }}{{ printf "%s@%s" $name .image.digest }}{{ else }}{{ printf "%s:%s" $name (.image.tag | default .root.Chart.AppVersion) }}{{ end }}
{{- end }}

{{- define "flex.image" -}}
{{ include "flex.reference" (dict "root" . "name" "flex-dispatcher" "image" .Values.image) }}
{{- end }}

{{- /* The arguments of an object's container, with the image for scripts, as a JSON array: {root, object} */ -}}
{{- define "flex.ownArgs" -}}
{{- $image := include "flex.reference" (dict "root" .root "name" "flex-shell" "image" .root.Values.scriptImage) }}
{{- $args := list }}
{{- range (index .object.spec.template.spec.containers 0).args }}
{{- $args = append $args (hasPrefix "--script-image=" . | ternary (printf "--script-image=%s" $image) .) }}
{{- end }}
{{- $args | toJson }}
{{- end }}

{{- /* The base's arguments, those that components add, those of configNamespaces, and extraArgs, as a JSON array: {root, object} */ -}}
{{- define "flex.args" -}}
{{- $args := fromJsonArray (include "flex.ownArgs" .) }}
{{- range fromJsonArray (include "flex.operations" .) }}
{{- if ne .path "/spec/template/spec/containers/0/args/-" }}{{ fail (printf "the chart cannot patch %s" .path) }}{{ end }}
{{- $args = append $args .value }}
{{- end }}
{{- with .root.Values.configNamespaces }}{{ $args = append $args (printf "--config-namespaces=%s" (keys . | sortAlpha | join ",")) }}{{ end }}
{{- concat $args .root.Values.extraArgs | toJson }}
{{- end }}

{{- /* 90 % of a memory limit, as deploy/base/dispatcher.yaml has it. */ -}}
{{- define "flex.goMemLimit" -}}
{{- $mebibytes := mul (regexFind "^[0-9]+" .) (ternary 1024 1 (hasSuffix "Gi" .)) }}
{{- printf "%dMiB" (div (mul $mebibytes 9) 10) }}
{{- end }}

{{- /* The base's Deployment with the values: {root, object} */ -}}
{{- define "flex.deployment" -}}
{{- $values := .root.Values }}
{{- $template := .object.spec.template }}
{{- $pod := $template.spec }}
{{- $container := index $pod.containers 0 }}
{{- $_ := set .object.spec "replicas" $values.replicas }}
{{- $_ := set $template.metadata "labels" (merge $template.metadata.labels $values.podLabels) }}
{{- with $values.podAnnotations }}{{ $_ := set $template.metadata "annotations" . }}{{ end }}
{{- range $key := list "imagePullSecrets" "tolerations" "affinity" "topologySpreadConstraints" "priorityClassName" }}
{{- with get $values $key }}{{ $_ := set $pod $key . }}{{ end }}
{{- end }}
{{- $_ := set $pod "nodeSelector" (merge (deepCopy $values.nodeSelector) $pod.nodeSelector) }}
{{- $_ := set $container "image" (include "flex.image" .root) }}
{{- $_ := set $container "args" (fromJsonArray (include "flex.args" .) | default list) }}
{{- $_ := set $container "resources" (merge (deepCopy $values.resources) $container.resources) }}
{{- range $container.env }}
{{- if eq .name "GOMEMLIMIT" }}{{ $_ := set . "value" (include "flex.goMemLimit" $container.resources.limits.memory) }}{{ end }}
{{- end }}
{{- toYaml .object }}
{{- end }}

{{- /* The Deployment of the audit, with the values that say where pods go and where the image is: {root, object} */ -}}
{{- define "flex.audit" -}}
{{- $values := .root.Values }}
{{- $pod := .object.spec.template.spec }}
{{- range $key := list "imagePullSecrets" "tolerations" "priorityClassName" }}
{{- with get $values $key }}{{ $_ := set $pod $key . }}{{ end }}
{{- end }}
{{- $_ := set $pod "nodeSelector" (merge (deepCopy $values.nodeSelector) $pod.nodeSelector) }}
{{- $container := index $pod.containers 0 }}
{{- $_ := set $container "image" (include "flex.image" .root) }}
{{- $_ := set $container "args" (fromJsonArray (include "flex.ownArgs" .)) }}
{{- toYaml .object }}
{{- end }}
