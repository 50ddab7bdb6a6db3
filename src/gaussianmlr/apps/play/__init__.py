"""A page where people move digits and see what models say."""
