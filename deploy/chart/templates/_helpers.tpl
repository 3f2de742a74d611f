{{- /* Values that the schema cannot judge, since it has no sentence to say why. */ -}}
{{- define "flex.check" -}}
{{- if ne .Release.Namespace "flex-system" }}
{{- fail "install with --namespace flex-system: whoever can create pods in the dispatcher's namespace acts as it, so it has one of its own, and the policies name it" }}
{{- end }}
{{- range .Values.extraArgs }}
{{- if regexMatch "^--(provisioner-name|namespace|config-namespaces|trust-username)(=|$)" . }}
{{- fail (printf "extraArgs has %s: RBAC or the policies of the chart would not follow this flag. For config namespaces there is the value configNamespaces, for --trust-username claimCreator.enabled" .) }}
{{- end }}
{{- end }}
{{- end }}

{{- /* The folders below files that are installed, as a JSON array. */ -}}
{{- define "flex.components" -}}
{{- $components := list "base" }}
{{- if .Values.nodeDirectories.enabled }}{{ $components = append $components "node-directories" }}{{ end }}
{{- if .Values.nodeDirectories.btrfs }}{{ $components = append $components "node-directories/btrfs" }}{{ end }}
{{- if .Values.claimCreator.enabled }}{{ $components = append $components "claim-creator" }}{{ end }}
{{- if .Values.networkPolicies.enabled }}{{ $components = append $components "network-policies" }}{{ end }}
{{- if .Values.audit.enabled }}{{ $components = append $components "audit" }}{{ end }}
{{- if .Values.monitoring.labels }}{{ $components = append $components "monitoring" }}{{ end }}
{{- toJson $components }}
{{- end }}

{{- /* The operations of these folders' kustomizations on one object, as a JSON array: {root, object} */ -}}
{{- define "flex.operations" -}}
{{- $operations := list }}
{{- range fromJsonArray (include "flex.components" .root) }}
{{- range (fromYaml ($.root.Files.Get (printf "files/%s/kustomization.yaml" .))).patches }}
{{- if and (eq .target.kind $.object.kind) (eq .target.name $.object.metadata.name) }}
{{- $operations = concat $operations (fromYamlArray .patch) }}
{{- end }}
{{- end }}
{{- end }}
{{- toJson $operations }}
{{- end }}

{{- /* One object of a file: {root, object, text}. Where no value concerns it, the text is the file's own, byte for byte. */ -}}
{{- define "flex.object" -}}
{{- $kind := .object.kind }}
{{- if eq $kind "Namespace" }}
{{- if ne .object.metadata.name .root.Release.Namespace }}{{ include "flex.namespace" .object }}{{ end }}
{{- else if and (eq $kind "Deployment") (eq .object.metadata.name "flex-dispatcher-audit") }}{{ include "flex.audit" . }}
{{- else if eq $kind "Deployment" }}{{ include "flex.deployment" . }}
{{- else if hasPrefix "monitoring.coreos.com/" .object.apiVersion }}{{ include "flex.monitored" . }}
{{- else if eq $kind "NetworkPolicy" }}{{ include "flex.networkPolicy" . }}
{{- else if ne (include "flex.operations" .) "[]" }}{{ include "flex.patched" . }}
{{- else }}{{ include "flex.widened" . }}
{{- end }}
{{- end }}

{{- /* It holds the Secrets and config revisions of volumes, so neither uninstall nor upgrade deletes it. */ -}}
{{- define "flex.namespace" -}}
{{- $_ := set .metadata "annotations" (dict "helm.sh/resource-policy" "keep") }}
{{- toYaml . }}
{{- end }}

{{- /* The names of configNamespaces, appended to the two forms in which the policies list the namespaces of configs, and podLabels, appended to the
labels and values by which no pod may keep the dispatcher from its nodes. */ -}}
{{- define "flex.widened" -}}
{{- $cel := "['flex-provisioner', 'flex-provisioner-node'" }}
{{- $selector := "[flex-provisioner, flex-provisioner-node" }}
{{- $moreCEL := $cel }}
{{- $moreSelectors := $selector }}
{{- range $name, $_ := .root.Values.configNamespaces }}
{{- $moreCEL = printf "%s, '%s'" $moreCEL $name }}
{{- $moreSelectors = printf "%s, %q" $moreSelectors $name }}
{{- end }}
{{- $labels := "'controller-uid', 'network-access'" }}
{{- $moreLabels := $labels }}
{{- $values := "'flex-dispatcher-audit', 'loop-attacher'" }}
{{- $moreValues := $values }}
{{- range $key, $value := .root.Values.podLabels }}
{{- $moreLabels = printf "%s, '%s'" $moreLabels $key }}
{{- $moreValues = printf "%s, '%s'" $moreValues $value }}
{{- end }}
{{- .text | replace $cel $moreCEL | replace $selector $moreSelectors | replace $labels $moreLabels | replace $values $moreValues }}
{{- end }}

{{- /* A policy that a component changes by JSON patches of its rules. */ -}}
{{- define "flex.patched" -}}
{{- range fromJsonArray (include "flex.operations" .) }}
{{- $path := splitList "/" .path }}
{{- if or (ne (len $path) 5) (ne (index $path 2) "validations") }}{{ fail (printf "the chart cannot patch %s" .path) }}{{ end }}
{{- if eq .op "replace" }}{{ $_ := set (index $.object.spec.validations (int (index $path 3))) (index $path 4) .value }}{{ end }}
{{- end }}
{{- toYaml .object }}
{{- end }}

{{- /* That of provisioning pods names the addresses of the API server and of one storage's control plane. */ -}}
{{- define "flex.networkPolicy" -}}
{{- if eq .object.metadata.name "flex-provisioner" }}
{{- $values := .root.Values.networkPolicies }}
{{- $api := list }}{{ range $values.apiServer }}{{ $api = append $api (dict "ipBlock" (dict "cidr" .)) }}{{ end }}
{{- $storage := list }}{{ range $values.storage }}{{ $storage = append $storage (dict "ipBlock" (dict "cidr" .)) }}{{ end }}
{{- $ports := list }}{{ range $values.storagePorts }}{{ $ports = append $ports (dict "protocol" "TCP" "port" .) }}{{ end }}
{{- $_ := set (index .object.spec.egress 1) "to" $api }}
{{- $_ := set (index .object.spec.egress 2) "to" $storage }}
{{- $_ := set (index .object.spec.egress 2) "ports" $ports }}
{{- end }}
{{- toYaml .object }}
{{- end }}

{{- /* An object of the Prometheus Operator, with the labels by which that selects it. */ -}}
{{- define "flex.monitored" -}}
{{- $_ := set .object.metadata "labels" (merge .object.metadata.labels .root.Values.monitoring.labels) }}
{{- toYaml .object }}
{{- end }}
