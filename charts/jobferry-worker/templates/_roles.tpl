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
    {{- include "jobferry-worker.account" .root | nindent 4 }}
{{- end -}}

{{- /* The ServiceAccount that requests are made as: the Deployment's, or the one that it impersonates. */ -}}
{{- define "jobferry-worker.account" -}}
{{- with .Values.impersonate -}}
{{- $parts := splitList ":" . -}}
name: {{ index $parts 3 }}
namespace: {{ index $parts 2 }}
{{- else -}}
name: {{ include "jobferry-worker.serviceAccountName" . }}
namespace: {{ .Release.Namespace }}
{{- end -}}
{{- end -}}

{{- /* A Role with one rule, for the account of these requests or the one given. Takes: root, name, namespace, rule, account. */ -}}
{{- define "jobferry-worker.role" -}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {{ .name }}
  namespace: {{ .namespace }}
  labels:
    {{- include "jobferry-worker.labels" .root | nindent 4 }}
rules:
  - {{- toYaml .rule | nindent 4 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ .name }}
  namespace: {{ .namespace }}
  labels:
    {{- include "jobferry-worker.labels" .root | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: {{ .name }}
subjects:
  - kind: ServiceAccount
    {{- .account | nindent 4 }}
{{- end -}}
