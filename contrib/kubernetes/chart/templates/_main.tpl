{{/* The container that the pod is for: an agent, or the edge. */}}

{{- define "agentContainer" -}}
- name: agent
  image: {{ .Values.agent.image }}
  {{- with .Values.agent.command }}
  command: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.agent.args }}
  args: {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext: {{- include "confined" . | nindent 4 }}
    runAsUser: {{ .Values.agent.uid }}
    runAsGroup: {{ .Values.agent.uid }}
  {{- with .Values.agent.env }}
  env: {{- toYaml . | nindent 4 }}
  {{- end }}
  volumeMounts:
    # Read-only: it may connect, and put no other socket in its place.
    - {name: client, mountPath: /run/gateway/client, readOnly: true}
{{- end }}

{{- define "edgeContainer" -}}
- name: edge
  image: {{ .Values.images.gateway }}
  args: [edge, --config, /etc/gateway/edge/edge.toml]
  securityContext: {{- include "confined" . | nindent 4 }}
    runAsUser: {{ .Values.edge.uid }}
    runAsGroup: {{ .Values.edge.uid }}
  ports:
    - {name: https, containerPort: {{ .Values.edge.port }}}
  resources: {{- toYaml .Values.edge.resources | nindent 4 }}
  {{- if .Values.edge.httpProbes }}
  readinessProbe:
    httpGet: {path: /readyz, port: https, scheme: HTTPS}
    periodSeconds: 2
    timeoutSeconds: 5
    failureThreshold: 2
  livenessProbe:
    httpGet: {path: /healthz, port: https, scheme: HTTPS}
    periodSeconds: 10
    timeoutSeconds: 5
    failureThreshold: 6
  {{- else }}
  readinessProbe:
    tcpSocket: {port: https}
    periodSeconds: 2
  livenessProbe:
    tcpSocket: {port: https}
    periodSeconds: 10
    failureThreshold: 6
  {{- end }}
  # New connections find another pod before this one takes no more.
  lifecycle: {preStop: {sleep: {seconds: 10}}}
  volumeMounts:
    - {name: client, mountPath: /run/gateway/client, readOnly: true}
    - {name: edge-config, mountPath: /etc/gateway/edge, readOnly: true}
    - {name: edge-tls, mountPath: /etc/gateway/edge-tls, readOnly: true}
{{- end }}

{{- define "edgeToml" -}}
listen = "0.0.0.0:{{ .Values.edge.port }}"
public_base_url = "{{ .Values.publicBaseUrl }}"
client_socket = "/run/gateway/client/gate.sock"

[tls]
certificate_file = "/etc/gateway/edge-tls/tls.crt"
key_file = "/etc/gateway/edge-tls/tls.key"
{{ with .Values.edge.tls }}{{ . }}
{{ end }}{{ with .Values.edge.tables }}{{ . }}
{{ end }}{{- end }}
