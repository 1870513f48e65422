{{- /* The generated roles of one part, with their bindings. Takes: root, part, name. */ -}}
{{- define "jobferry-worker.roles" -}}
{{- $root := .root }}{{ $name := .name }}
{{- range regexSplit "(?m)^---$" (.root.Files.Get (printf "files/rbac/%s.yaml" .part)) -1 }}
{{- $role := fromYaml . }}
{{- if $role.kind }}
{{- /* The code says jobferry-system for the namespace that the controller is in. */ -}}
{{- $namespace := $role.metadata.namespace }}
{{- if eq (toString $namespace) "jobferry-system" }}{{ $namespace = $root.Release.Namespace }}{{ end }}
---
apiVersion: {{ $role.apiVersion }}
kind: {{ $role.kind }}
metadata:
  name: {{ $name }}
  {{- with $namespace }}
  namespace: {{ . }}
  {{- end }}
  labels:
    {{- include "jobferry-worker.labels" $root | nindent 4 }}
rules:
  {{- toYaml $role.rules | nindent 2 }}
---
{{ include "jobferry-worker.binding" (dict "root" $root "name" $name "namespace" $namespace) }}
{{- end }}
{{- end }}
{{- end -}}

{{- /* Binds the controller to the ClusterRole, or to the Role of a namespace. Takes: root, name, namespace. */ -}}
{{- define "jobferry-worker.binding" -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ ternary "RoleBinding" "ClusterRoleBinding" (not (empty .namespace)) }}
metadata:
  name: {{ .name }}
  {{- with .namespace }}
  namespace: {{ . }}
  {{- end }}
  labels:
    {{- include "jobferry-worker.labels" .root | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ ternary "Role" "ClusterRole" (not (empty .namespace)) }}
  name: {{ .name }}
subjects:
  - kind: ServiceAccount
    name: {{ include "jobferry-worker.serviceAccountName" .root }}
    namespace: {{ .root.Release.Namespace }}
{{- end -}}
