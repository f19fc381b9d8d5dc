"""Mail, webhooks and chats: how a report or an alert leaves the house."""
